"""What processes say to each other: a line of JSON, then flat arrays as they lie in memory. Nothing is unpickled."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]


class Message(NamedTuple):
    """Plain fields, and arrays of one dimension."""

    fields: dict[str, Any]
    arrays: Arrays


def write(stream: BinaryIO, fields: dict[str, Any], arrays: Arrays | None = None) -> None:
    """Send a message."""
    flat = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    head = {"fields": fields, "arrays": [[name, array.dtype.str, array.size] for name, array in flat.items()]}
    stream.write(json.dumps(head).encode() + b"\n")
    for array in flat.values():
        stream.write(array.data)
    stream.flush()


def read(stream: BinaryIO) -> Message | None:
    """The next message; None if nobody is left to send one."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    arrays: Arrays = {}
    for name, kind, size in head["arrays"]:
        content = stream.read(np.dtype(kind).itemsize * size)
        if len(content) < np.dtype(kind).itemsize * size:
            return None
        arrays[name] = np.frombuffer(content, kind)
    return Message(head["fields"], arrays)
