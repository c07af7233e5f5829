"""What papers compare and nobody asks every day: taken-out values, filled-in values, estimators side by side."""
