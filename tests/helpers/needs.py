"""What a test needs beside the package: without it the test is left out, but not where all of them must run."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def left_out(why: str) -> NoReturn:
    """Leave a test out; in continuous integration, which installs what tests need, that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
