"""Work that takes a while: in bounded queues, with progress, ended by time or by wish, answers kept a while.

Turns are taken, not queued for: the next job is one of the address that was served longest ago, and of its visitors of
the one who was. So who asks much waits for themselves. Where a lane has no place left, a job of whoever has most gives
way to who has less (:func:`lakescope.faces.serving.visitors.giving_way`). A job that is everybody's is everybody's who
asks for it: it counts for each of them, comes in the best turn of any, and gives way only if all of them have more.
"""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from lakescope.errors import LakescopeError, NotFound
from lakescope.faces.serving.places import Places
from lakescope.faces.serving.refusals import busy, cancelled, code_of, displaced, link_of_another_site
from lakescope.faces.serving.visitors import Claim, Owner, giving_way, is_foreign, owner_of
from lakescope.faces.serving.worker import Worker
from lakescope.logs import log

State = Literal["queued", "running", "done", "failed", "cancelled"]
#: A lane has a worker of its own: what is quick does not wait for what takes long.
Lane = Literal["quick", "long"]
LANES: tuple[Lane, ...] = ("quick", "long")

#: Jobs that may wait in a lane: of all, of an address, and of a visitor about files.
_WAITING, _WAITING_ADDRESS, _WAITING_EACH = 256, 128, 6
#: Addresses and visitors of whom it is remembered when they were served, and who ask for the same job.
_TURNS, _SHARING = 10_000, 50
#: Seconds and bytes that answers are kept for, and bytes that each counts for at least, also one that there is not.
_KEPT_SECONDS, _KEPT_BYTES, _LEAST_BYTES = 1_800.0, 64_000_000, 16_000
#: Seconds after which who has not asked about a job is taken to have gone, and visitors that are remembered of one.
_GONE_SECONDS, _REMEMBERED = 30.0, 1_000


@dataclass(eq=False, slots=True)
class Job:
    """A question that is worked on, or was."""

    id: str
    visitor: str
    question: str
    lane: Lane
    parameters: dict[str, Any]
    limit: float
    state: State = "queued"
    doing: str = "waiting for its turn"
    share: float | None = None
    asked: float = field(default_factory=time.monotonic)
    began: float | None = None
    ended: float | None = None
    answer: dict[str, Any] | None = None
    error: LakescopeError | None = None
    size: int = 0
    finished: threading.Event = field(default_factory=threading.Event)
    then: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    otherwise: Callable[[], None] | None = None
    #: Who asked for it and pays.
    owners: list[Owner] = field(default_factory=list)
    #: Who waits for a job that is everybody's, and since when nothing was heard of each; who has left it.
    seen: OrderedDict[str, float] = field(default_factory=OrderedDict)
    left: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def meet(self, visitor: str) -> None:
        """Note that somebody waits; of too many the first are forgotten."""
        if not self.visitor and visitor and not self.finished.is_set():
            self.seen[visitor] = time.monotonic()
            self.seen.move_to_end(visitor)
            if len(self.seen) > _REMEMBERED:
                self.seen.popitem(last=False)

    def charge(self, owner: Owner) -> None:
        """Note who pays, too; where there are too many, another one of an address that has several is forgotten."""
        if owner in self.owners:
            return
        if len(self.owners) >= _SHARING:
            ((address, number),) = Counter(each.address for each in self.owners).most_common(1)
            if number == 1 or address == owner.address:
                return
            self.owners.remove(next(each for each in self.owners if each.address == address))
        self.owners.append(owner)

    def leave(self, visitor: str) -> bool:
        """Note that somebody waits no more; whether nobody does."""
        self.seen.pop(visitor, None)
        self.left[visitor] = None
        if len(self.left) > _REMEMBERED:
            self.left.popitem(last=False)
        return time.monotonic() - max(list(self.seen.values()), default=-math.inf) > _GONE_SECONDS

    def state_for(self, visitor: str) -> State:
        """How it stands for somebody: who has left it sees it cancelled, though others may still wait."""
        return "cancelled" if visitor in self.left and not self.finished.is_set() else self.state

    @property
    def seconds(self) -> float:
        """How long it has been worked on."""
        return 0.0 if self.began is None else (self.ended or time.monotonic()) - self.began

    def result(self) -> dict[str, Any]:
        """The answer of a job that has finished."""
        if self.answer is None:
            raise self.error or cancelled()
        return self.answer


class Jobs:
    """The queues of one server, and a worker for each."""

    def __init__(self, index: str, memory: int, places: Callable[[], Places] | None = None) -> None:
        self._places = places or (lambda: Places([index]))
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._known: dict[str, str] = {}
        self._workers = {lane: Worker(index, memory) for lane in LANES}
        #: In the order in which they came.
        self._waiting: dict[Lane, list[Job]] = {lane: [] for lane in LANES}
        self._turns: dict[Lane, _Turns] = {lane: _Turns() for lane in LANES}
        self._something = threading.Condition(self._lock)
        self._closed = False
        self.ended: Counter[State] = Counter()
        self._threads = [threading.Thread(target=self._work, args=[lane], daemon=True) for lane in LANES]

        for thread in self._threads:
            thread.start()

    def start(self) -> None:
        """Start the workers, which load what they need meanwhile."""
        for worker in self._workers.values():
            worker.start()

    def renew(self) -> None:
        """Answer from the index that is published now: what was answered before is not told again."""
        with self._lock:
            self._known.clear()
        for worker in self._workers.values():
            worker.renew()

    def close(self) -> None:
        """End the workers and whatever they do."""
        with self._something:
            self._closed = True
            self._something.notify_all()
        for worker in self._workers.values():
            worker.close()

    def submit(
        self,
        visitor: str,
        question: str,
        parameters: dict[str, Any],
        *,
        lane: Lane,
        limit: float,
        asker: str = "",
        key: str | None = None,
        then: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        otherwise: Callable[[], None] | None = None,
    ) -> Job:
        """Begin a job, or find the one that does the same: known by its ``key``, else by what it asks.

        Without a ``visitor`` it is everybody's, and the ``asker`` one of those who wait for it. ``then`` is done with
        the answer, in this process, ``otherwise`` if there is none. Whom a link of another site led here finds what is
        there, and begins nothing.
        """
        known = json.dumps([visitor, question, key or parameters], sort_keys=True, default=str)
        owner = owner_of(visitor or asker)
        with self._something:
            self._forget()
            there = self._jobs.get(self._known.get(known, ""))
            if there is not None and there.state in ("queued", "running", "done"):
                self._jobs.move_to_end(there.id)
                there.left.pop(asker, None)
                there.meet(asker)
                there.charge(owner)
                return there
            if is_foreign(visitor or asker):
                raise link_of_another_site()
            self._make_room(lane, owner, about_file=bool(visitor))
            job = Job(
                secrets.token_urlsafe(16), visitor, question, lane, parameters, limit, then=then, otherwise=otherwise
            )
            job.meet(asker)
            job.charge(owner)
            self._jobs[job.id] = job
            self._known[known] = job.id
            self._waiting[lane].append(job)
            self._something.notify_all()
        return job

    def _make_room(self, lane: Lane, owner: Owner, *, about_file: bool) -> None:
        """See that one more job can wait; the latest of whoever has most gives way."""
        waiting = self._waiting[lane]
        if about_file and sum(bool(job.visitor) and owner in job.owners for job in waiting) >= _WAITING_EACH:
            raise busy(f"{_WAITING_EACH} of your questions are waiting already")
        claims = [Claim(tuple(job.owners), 1, job) for job in reversed(waiting)]
        going = giving_way(claims, Claim((owner,), 1, None), room=_WAITING, each=_WAITING_ADDRESS)
        if going is None:
            raise busy(f"{len(waiting)} questions are waiting already")
        for job in going:
            self._end(job, "failed", error=displaced())

    def find(self, visitor: str, number: str) -> Job:
        """A job of a visitor, or one that is everybody's."""
        with self._lock:
            job = self._jobs.get(number)
            if job is None or job.visitor not in ("", visitor):
                raise NotFound(
                    "no such work of yours", hint="answers are kept for half an hour, in one browser: ask again"
                )
            if visitor not in job.left:
                job.meet(visitor)
            return job

    def of_visitor(self, visitor: str) -> list[Job]:
        """The jobs of a visitor, the latest first."""
        with self._lock:
            return [job for job in reversed(self._jobs.values()) if job.visitor == visitor]

    def counts(self) -> dict[tuple[Lane, State], int]:
        """How many jobs of each lane wait, and are worked on."""
        with self._lock:
            found = Counter((job.lane, job.state) for job in self._jobs.values())
        states: tuple[State, ...] = ("queued", "running")
        return {(lane, state): found[lane, state] for lane in LANES for state in states}

    def processes(self) -> dict[Lane, int]:
        """The process of each lane's worker, of those that run."""
        return {lane: pid for lane, worker in self._workers.items() if (pid := worker.pid) is not None}

    def before(self, job: Job) -> int:
        """How many jobs may come before one that waits, if nobody asks for more."""
        with self._lock:
            if job not in self._waiting[job.lane]:
                return 0
            running = any(each.lane == job.lane and each.state == "running" for each in self._jobs.values())
            return running + _Turns.before(job, self._waiting[job.lane])

    def cancel(self, job: Job, visitor: str) -> None:
        """End a job, whether it waits or is worked on; one that is everybody's when nobody else waits for it."""
        with self._lock:
            if not job.visitor and not job.leave(visitor):
                job.owners = [each for each in job.owners if each != owner_of(visitor)] or job.owners
                return
            if job.state == "queued":
                self._end(job, "cancelled", error=cancelled())
            elif job.state == "running":
                job.state = "cancelled"
                self._workers[job.lane].end(cancelled())

    def _work(self, lane: Lane) -> None:
        worker = self._workers[lane]
        while (job := self._next(lane)) is not None:
            try:
                answer = worker.ask(job.question, job.parameters, job.limit, _teller(job))
                answer = answer if job.then is None else job.then(answer)
                with self._lock:
                    self._end(job, "done", answer=answer)
            except LakescopeError as error:
                with self._lock:
                    self._end(job, "failed", error=error)
            except Exception as error:
                with self._lock:
                    self._end(
                        job, "failed", error=LakescopeError(f"unexpected {type(error).__name__}", hint="report it")
                    )

    def _next(self, lane: Lane) -> Job | None:
        """Wait for a job and begin it; None when there will be none."""
        with self._something:
            while not self._closed and not self._waiting[lane]:
                self._something.wait()
            if self._closed:
                return None
            job = self._turns[lane].take(self._waiting[lane])
            job.state, job.began, job.doing = "running", time.monotonic(), "starting"
            return job

    def _end(
        self, job: Job, state: State, *, answer: dict[str, Any] | None = None, error: LakescopeError | None = None
    ) -> None:
        if job.state == "queued":
            self._waiting[job.lane].remove(job)
        if error is not None:
            error = self._places().without(error)
        if answer is not None and answer.get("notes"):
            answer["notes"] = [self._places().hide(note) for note in answer["notes"]]
        job.state = "cancelled" if job.state == "cancelled" else state
        job.answer, job.error, job.ended = answer, error, time.monotonic()
        self.ended[job.state] += 1
        reason = code_of(error) if error is not None else None
        log("job", question=job.question, lane=job.lane, state=job.state, seconds=job.seconds, code=reason)
        job.size = max(_LEAST_BYTES, len(json.dumps(answer)) if answer is not None else 0)
        if answer is None and job.otherwise is not None:
            job.otherwise()
        job.finished.set()

    def _forget(self) -> None:
        """Forget answers that are old or too many; what waits or is worked on stays."""
        now, kept = time.monotonic(), 0
        for number, job in reversed(list(self._jobs.items())):
            kept += job.size
            old = job.ended is not None and (now - job.ended > _KEPT_SECONDS or kept > _KEPT_BYTES)
            if old and kept > job.size:
                del self._jobs[number]
        self._known = {known: number for known, number in self._known.items() if number in self._jobs}


class _Turns:
    """Whose turn it is in a lane: of the address that was served longest ago, or never, and so of its visitors."""

    def __init__(self) -> None:
        self._now = 0
        self._served: OrderedDict[str | Owner, int] = OrderedDict()

    def take(self, waiting: list[Job]) -> Job:
        """The next of the jobs that wait, which waits no more."""
        job = min(waiting, key=self._rank)
        waiting.remove(job)
        self._now += 1
        for owner in job.owners:
            for each in (owner.address, owner):
                self._served[each] = self._now
                self._served.move_to_end(each)
        while len(self._served) > _TURNS:
            self._served.popitem(last=False)
        return job

    def _rank(self, job: Job) -> tuple[int, int]:
        return min((self._served.get(owner.address, 0), self._served.get(owner, 0)) for owner in job.owners)

    @staticmethod
    def before(job: Job, waiting: list[Job]) -> int:
        """How many may come before one of them: of each address as many as of its own, and so of its visitors."""
        (mine, *_) = job.owners
        of_owner = Counter(each.owners[0] for each in waiting)
        older = [each.owners[0] for each in waiting[: waiting.index(job)]].count(mine)
        here = older + sum(min(n, older + 1) for it, n in of_owner.items() if it.address == mine.address and it != mine)
        of_address: Counter[str] = Counter()
        for owner, number in of_owner.items():
            of_address[owner.address] += number
        return here + sum(min(n, here + 1) for address, n in of_address.items() if address != mine.address)


def _teller(job: Job) -> Callable[[str, float | None], None]:
    def tell(doing: str, share: float | None) -> None:
        job.doing, job.share = doing, share

    return tell
