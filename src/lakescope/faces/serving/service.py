"""The one service layer: every question as a function of plain, checked parameters, its answer as plain data.

Pages and the REST interface call nothing else. What the index alone can answer is answered here, at once; what reads a
table, or looks at the whole lake, is a job that a worker does (:mod:`lakescope.faces.serving.jobs`). A query is named,
never located: ``table:`` and the name of a table of the lake, or ``upload:`` and the number of a file of the visitor's.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from shutil import rmtree
from typing import Any, BinaryIO, cast

from lakescope.errors import BadRequest, LakescopeError, NotFound
from lakescope.faces.serving import tasks
from lakescope.faces.serving.held import Held
from lakescope.faces.serving.jobs import LANES, Job, Jobs
from lakescope.faces.serving.makings import MAKINGS
from lakescope.faces.serving.places import Places
from lakescope.faces.serving.plain import plain
from lakescope.faces.serving.refusals import Refused, busy, code_of, status_of
from lakescope.faces.serving.uploads import Upload, Uploads
from lakescope.faces.serving.visitors import owner_of
from lakescope.lake import Lake
from lakescope.logs import log
from lakescope.questions.joinable import JoinableRequest
from lakescope.questions.model import Meaning, Request, options_of
from lakescope.store.catalog import Catalog
from lakescope.store.records import Rows

Record = dict[str, Any]
#: An answer, or the job that will have one.
Asked = Record | Job

#: Questions that the index answers, at the same time.
_AT_ONCE = 4
#: Such questions of one address that run or wait, each in a thread of the server's, and seconds that one waits.
_AT_ONCE_EACH, _PATIENCE = 20, 10.0
#: Answers of the index that are kept: it does not change.
_KEPT = 512
#: Seconds that a worker may take: for what somebody waits for, and for what is known to take long.
QUICK, LONG = 30.0, 180.0
#: Columns up to which keys are looked for without being asked to.
FEW_COLUMNS = 20_000
#: Seconds that the first rows of a file that is sent are waited for.
CHECKED = 10.0
#: Seconds that the first page has to itself, before anything is loaded for later ones.
_FIRST_PAGE = 1.0
#: Seconds between two looks whether a newer index was published.
_LOOK_SECONDS = 5.0
#: How often a lake that goes is looked for as garbage: somebody may hold it while the collector passes.
_LOOKS = 3
_COLLECTING = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Asker:
    """Who asks: equal to everybody else, since an answer that is kept is everybody's."""

    visitor: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """What a question is about: a table of the lake, or a file of a visitor's."""

    reference: str
    name: str
    place: str
    upload: Upload | None

    @property
    def in_lake(self) -> bool:
        """Whether it is a table of the lake."""
        return self.upload is None

    @property
    def holds(self) -> tuple[Held, ...]:
        """What of the lake is in it; a table of the lake finds neither itself nor does what is made from it."""
        return (Held(self.name),) if self.upload is None else self.upload.holds


def _retire(leaving: list[Lake]) -> None:
    """Let go of a lake, which nobody else holds: its memory, and the files that it has open."""
    leaving[0].close()
    index = weakref.ref(leaving.pop()._index)
    for _ in range(_LOOKS):
        # What the collector was told to leave alone is the lake that goes, among others.
        _collect()
        if index() is None:
            return
        time.sleep(QUICK)


def _collect() -> None:
    """Look for garbage once, then leave alone what stays: the catalog of a large lake is millions of objects.

    One at a time: a collector that is at work already does nothing, and what was to go would be left alone, too.
    """
    with _COLLECTING:
        gc.unfreeze()
        gc.collect()
        gc.freeze()


class Service:
    """Answers for one lake."""

    def __init__(self, lake: Lake, *, largest: int, memory: int) -> None:
        self.uploads = Uploads(largest)
        self.jobs = Jobs(lake.opened_as, memory, lambda: self.places)
        self._counting = threading.Lock()
        self._lanes = threading.BoundedSemaphore(_AT_ONCE)
        self._asking: Counter[str] = Counter()
        self._take(lake)
        self.ready = threading.Event()
        self._ended = threading.Event()
        # Not at once: the first page comes first.
        self._starting = threading.Timer(_FIRST_PAGE, self._warm)

    def _take(self, lake: Lake) -> None:
        """Answer from a lake; whoever is being answered from another one goes on with that."""
        places = Places([lake.opened_as, lake.path, *lake.info()["sources"], *self.uploads.places])
        with self._counting:
            self.lake, self._generation, self.places = lake, lake.generation, places
            # New ones, not empty ones: an answer that is being found must not be kept for the new lake.
            self._joins = lru_cache(_KEPT)(self._joins_of)

    def _follow(self) -> None:
        """Answer from what is published, once it is."""
        while not self._ended.wait(_LOOK_SECONDS):
            with suppress(LakescopeError, OSError):
                self.look()

    def look(self) -> bool:
        """Take the lake that is published now, if it is another one; whether it was."""
        old, newer = self.lake, self.lake.newer()
        if newer is None and old.generation == self._generation:
            return False
        if newer is None:  # a question that met damage opened it anew
            self._take(old)
            self.jobs.renew()
            return True
        if self.ready.is_set():
            newer.warm()
        self._take(newer)
        self.jobs.renew()
        # Whoever is being asked may still answer.
        ending = threading.Timer(QUICK, _retire, [[old]])
        ending.daemon = True
        ending.start()
        return True

    def start(self) -> None:
        """Get ready while the first page is shown: workers start, compiled kernels are loaded."""
        self._starting.daemon = True
        self._starting.start()

    def _warm(self) -> None:
        self.jobs.start()
        try:
            self.catalog.warm()
            self._warm_lanes()
        except Exception as error:  # whoever asks is told; a server that waits for ever tells nobody
            log("failed", level=logging.ERROR, error=error, doing="getting ready")
        for lane in LANES:
            with suppress(LakescopeError):
                self.jobs.submit("", "warm", {}, lane=lane, limit=600.0, key=lane)
        self.ready.set()
        _collect()
        threading.Thread(target=self._follow, name="lakescope-follow", daemon=True).start()

    def _warm_lanes(self) -> None:
        """Where the kernels were never compiled this takes one lane a minute: meanwhile the others answer."""
        with self._lane() as lake:
            lake.warm()
            lake.joinable({"value": ["x"]}, on="value", k=1)

    def close(self) -> None:
        """End all work, forget all files."""
        self._ended.set()
        self._starting.cancel()
        gc.unfreeze()
        self.jobs.close()
        self.lake.close()
        self.uploads.close()

    @contextmanager
    def _lane(self, visitor: str = "") -> Iterator[Lake]:
        """The lake as it is now, for so many questions at the same time: each takes memory while it runs.

        Those of one address take no more than a part of the threads that all share.
        """
        address = owner_of(visitor).address
        with self._counting:
            if address and self._asking[address] >= _AT_ONCE_EACH:
                raise busy(f"{_AT_ONCE_EACH} questions of your address are being answered")
            self._asking[address] += 1
        try:
            if not self._lanes.acquire(timeout=_PATIENCE):
                raise busy("too many questions are being answered")
            try:
                with self.lake._view() as lake:
                    yield lake
            finally:
                self._lanes.release()
        finally:
            with self._counting:
                self._asking[address] -= 1
                if not self._asking[address]:
                    del self._asking[address]

    @property
    def catalog(self) -> Catalog:
        """The catalog of the lake as it is now."""
        return self.lake._catalog

    # --- what the index answers ---------------------------------------------------------------------------------------

    def known(self, asked: Request[Any]) -> Any:
        """What the catalog tells at once, for pages: rows, or a record."""
        return self.at_once("", asked)["data"]

    def at_once(self, visitor: str, asked: Request[Any]) -> Record:
        """The answer to a question that the index answers, and no worker."""
        answer = self.ask(visitor, asked)
        assert not isinstance(answer, Job)
        return answer

    def facets(self, **wanted: Any) -> Record:
        """Values of facets and how many tables have each, of those that fit what is wanted of the other facets."""
        return self.catalog.facets(**wanted)

    def like(self, name: str) -> Record:
        """Tables with the same columns, by name."""
        self.lake.location(name)
        return {"records": self.catalog.like(name), "notes": []}

    def joins(self, visitor: str, asked: JoinableRequest) -> Record:
        """Tables that join with one of the lake, by its name; answers are kept, since pages of tables show them."""
        return self._joins(_Asker(visitor), asked)

    def _joins_of(self, asker: _Asker, asked: JoinableRequest) -> Record:
        with self._lane(asker.visitor) as lake:
            lake.location(asked.query)  # a name of a table: what is none is not taken for a path
            answer: Record = plain(tasks.answered(asked.ask(lake)))
            return answer

    # --- queries ------------------------------------------------------------------------------------------------------

    def query(self, visitor: str, reference: str) -> Query:
        """What a reference names."""
        kind, _, name = reference.partition(":")
        if kind == "table":
            self.lake.location(name)  # refuses what is not there
            return Query(reference, name, name, None)
        if kind == "upload":
            upload = self.uploads.find(visitor, name)
            return Query(reference, upload.name, str(upload.path), upload)
        raise BadRequest(f"cannot tell what {reference!r} is", hint="write table:NAME or upload:NUMBER")

    def upload(self, visitor: str, name: str, stream: BinaryIO) -> tuple[Upload, Job | None]:
        """Take a file of a visitor's, and begin to read its first rows, if not too many wait for that."""
        upload = self.uploads.add(visitor, name, stream)
        try:
            asked = {"asked": {"query": str(upload.path)}}
            return upload, self.jobs.submit(visitor, "head", asked, lane="quick", limit=QUICK)
        except LakescopeError:
            return upload, None

    def check_readable(self, upload: Upload, job: Job | None) -> None:
        """Refuse a file that is damaged or has no rows, by what its owner calls it.

        Where it is not known yet, because that takes long or many wait, whoever asks about it will be told.
        """
        if job is None or not job.finished.is_set():
            return
        try:
            self._check_rows(upload, job)
        except LakescopeError:
            with suppress(NotFound):  # it may have made room for another one meanwhile
                self.uploads.remove(upload.visitor, upload.id)
            raise

    def _check_rows(self, upload: Upload, job: Job) -> None:
        try:
            rows = job.result()["records"]
        except LakescopeError as error:
            if status_of(error) not in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                return
            message = error.message.replace(str(upload.path), upload.name).replace(upload.path.name, upload.name)
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, code_of(error), message, hint=error.hint) from error
        if not rows:
            raise BadRequest(f"{upload.name!r} has no rows", hint="send a file with a header and rows")

    def ask(self, visitor: str, asked: Request[Any]) -> Asked:
        """Have a question answered that is declared: by the index here, at once, or by a worker.

        What takes long is a job: everybody's if it is about the lake, the visitor's if it is about a file.
        """
        queries, parameters = self._placed(visitor, asked)
        ours = all(query.in_lake for query in queries.values())
        name = asked.about.name
        if asked.lane == "catalog" or (ours and asked.lane == "quick" and not asked.about.reads):
            with self.lake._view() if asked.lane == "catalog" else self._lane(visitor) as lake:
                for query in queries.values():
                    lake.location(query.place)  # it may be gone since: a name is not taken for a path
                answer = tasks.ask(lake, _nobody, name, **parameters)
            # Rows are made plain when a page of them is told.
            answer = {part: each if isinstance(each, Rows) else plain(each) for part, each in answer.items()}
            if name == "info":
                answer["data"]["ready"] = self.ready.is_set()
            return {**answer, "notes": [self.places.hide(note) for note in answer["notes"]]}
        limit = QUICK if asked.lane == "quick" else LONG
        return self.jobs.submit("" if ours else visitor, name, parameters, lane=asked.lane, limit=limit, asker=visitor)

    def make(self, visitor: str, asked: Request[Any], search: Record | None = None) -> Job:
        """Have a table made: a new file of the visitor's.

        ``search`` is what the visitor searched with, told again with the answer, to go on with.
        """
        queries, parameters = self._placed(visitor, asked)
        if search:
            parameters["search"] = search
        place, making = self.uploads.place(), MAKINGS[asked.about.name]

        def kept(answer: Record) -> Record:
            if not place.exists():
                dropped()
                return {**_without_names(answer), "upload": None}
            called = f"{Path(next(iter(queries.values())).name).name.partition('.')[0]}-joined.parquet"
            made = making.words(asked, queries, answer)
            upload, gone = self.uploads.keep(visitor, called, place, made, making.holds(asked, queries, answer))
            notes = [*answer.get("notes", [])]
            if gone is not None:
                notes.append(f"{gone.name!r} was forgotten to make room for this: so many files of yours are kept")
            return {**_without_names(answer), "notes": notes, "upload": upload.id, "made": made, "size": upload.size}

        def dropped() -> None:
            rmtree(place.parent, ignore_errors=True)

        written = {**parameters, "out": str(place)}
        steps: Record = {"key": repr(parameters), "then": kept, "otherwise": dropped}
        try:
            job = self.jobs.submit(visitor, asked.about.name, written, lane="long", limit=LONG, **steps)
        except LakescopeError:
            dropped()
            raise
        if job.parameters is not written:  # the same is being done already
            dropped()
        return job

    def _placed(self, visitor: str, asked: Request[Any]) -> tuple[dict[str, Query], Record]:
        """The tables that a question is about, and the parameters of a worker, who is told where they lie."""
        queries = {name: self.query(visitor, getattr(asked, name)) for name in _names_of(asked, Meaning.TABLE)}
        for name in _names_of(asked, Meaning.LAKE_TABLE):
            if asked.lane == "long" and getattr(asked, name) is not None:
                self.lake.location(getattr(asked, name))  # refuses what is not there before a job waits
        placed = replace(cast(Any, asked), **{name: query.place for name, query in queries.items()})
        parameters: Record = {"asked": placed.parameters()}
        if files := {name: query for name, query in queries.items() if not query.in_lake}:
            parameters["names"] = {name: query.name for name, query in files.items()}
            parameters["held"] = [each for query in files.values() for each in _told(query)]
        return queries, parameters

    # --- jobs that are everybody's ------------------------------------------------------------------------------------

    def keys(self, visitor: str) -> Job:
        """Primary and foreign keys of the lake."""
        return self.jobs.submit("", "keys", {}, lane="long", limit=LONG, asker=visitor)


def _names_of(asked: Request[Any], meaning: Meaning) -> list[str]:
    """Options of a question that stand for something."""
    return [name for name, option in options_of(type(asked), "rest").items() if option.meaning is meaning]


def _told(query: Query) -> list[list[Any]]:
    """What a file holds, as plain data; a table of the lake does not find itself anyway."""
    return [] if query.in_lake else [each.told() for each in query.holds]


def _without_names(answer: Record) -> Record:
    """An answer without what its columns are called, which is for this process."""
    return {name: value for name, value in answer.items() if name != "names"}


def keys_of(answer: Record, table: str) -> Record:
    """What the keys of a lake say about one table."""
    return {
        "primary": [each for each in answer["primary"] if each["table"] == table],
        "refers": [each for each in answer["records"] if each["child_table"] == table],
        "referred": [each for each in answer["records"] if each["parent_table"] == table],
        "notes": [f"In the whole lake: {note}" for note in answer["notes"]],
    }


def _nobody(doing: str, share: float | None) -> None:
    """Told about progress where nobody waits."""
