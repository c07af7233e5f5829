"""``python -m lakescope`` is ``lakescope``."""

from lakescope.cli import main

main()
