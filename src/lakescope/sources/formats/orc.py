"""ORC files: units are runs of stripes.

The ORC library crashes on damaged files, so it runs in a helper process, which hands over one stripe at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc as ipc

from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.formats import arrow_batches
from lakescope.sources.io import files
from lakescope.sources.io.isolated import Helper, serve
from lakescope.sources.model import Batch, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

_HELPER = Helper("lakescope.sources.formats.orc", "answer_questions")


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Units of about ``target_bytes`` that begin and end with a stripe."""
    return planning.plan_pieces(found, target_bytes, "orc", _weigh)


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read stripes one after the other."""
    file = {"uri": unit.uri, "compression": unit.options.get("compression")}
    about, schema = _HELPER.ask(unit.table, file)
    first, last = unit.options.get("pieces", (0, about["stripes"]))
    stripes = (_stripe(unit.table, {**file, "stripe": index}) for index in range(first, last))
    yield from arrow_batches.text_batches(stripes, ipc.open_stream(schema).schema, unit.table, report, unit.size)


def _stripe(table: str, question: dict[str, Any]) -> Any:
    batch = ipc.open_stream(_HELPER.ask(table, question)[1]).read_next_batch()
    arrow_batches.check(batch)
    return batch


def _weigh(uri: str) -> list[int]:
    """Stripes count as equal: pyarrow does not tell their sizes."""
    return [1] * int(_HELPER.ask(files.display(uri), {"uri": uri, "compression": None})[0]["stripes"])


def answer_questions() -> None:
    """What the helper process runs: tell the stripes of a file, or hand over one of them."""
    opened = _Opened()

    def answer(question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        stripe = question.get("stripe")
        file = opened.file(question["uri"], question["compression"], fresh=stripe is None)
        if stripe is None:
            return {"stripes": file.nstripes}, _message(file.schema)
        return {}, _message(file.schema, file.read_stripe(stripe))

    serve(answer, hint="write or copy the file again")


class _Opened:
    """The file that was asked about last stays open, until it is asked about anew: it may have changed."""

    def __init__(self) -> None:
        self._key: tuple[str, str | None] | None = None
        self._file: Any = None
        self._stack = ExitStack()

    def file(self, uri: str, compression: str | None, *, fresh: bool) -> Any:
        from pyarrow.orc import ORCFile

        if fresh or self._key != (uri, compression):
            self._key = None
            self._stack.close()
            source = self._stack.enter_context(files.open_random(uri, compression))
            if source.size() == 0:
                raise SourceError("is empty: it holds no table", code="empty-file")
            try:
                self._file = ORCFile(source)
            except (pa.ArrowInvalid, OSError) as error:
                reason = f"is not an ORC file or cut off: {files.reason_of(error)}"
                raise SourceError(reason, hint="write or copy the file again", code="truncated") from error
            self._key = (uri, compression)
        return self._file


def _message(schema: Any, batch: Any = None) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, schema) as writer:
        if batch is not None:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
