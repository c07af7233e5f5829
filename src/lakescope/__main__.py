"""``python -m lakescope`` is ``lakescope``."""

from lakescope.faces.cli import main

main()
