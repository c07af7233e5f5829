"""The lake in a browser and over HTTP: one service layer, and two thin faces over it."""
