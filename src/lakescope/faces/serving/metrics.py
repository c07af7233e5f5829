"""What a server counts about itself, in the text format that Prometheus and its kin read (version 0.0.4).

Few families and few labels: requests by route (the pattern, never the address, which holds names and values), jobs by
lane and state, what is served, and what the processes take. Written by hand: the format is a page long, and a library
for it would be one more to trust.
"""

from __future__ import annotations

import logging
import os
import resource
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from lakescope._version import __version__
from lakescope.faces.serving.connections import Connections, Reason
from lakescope.faces.serving.service import Service
from lakescope.logs import log

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Upper ends, in seconds, of what latencies are counted by.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: What a request is counted under that no route serves: there are as many addresses as anybody likes to ask for.
UNKNOWN = "unknown"
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]


class Metrics:
    """Counts requests; the rest is looked up when somebody asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._latencies: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._running = 0

    def began(self) -> None:
        """A request came in."""
        with self._lock:
            self._running += 1

    def ended(self, route: str, method: str, status: int, seconds: float) -> None:
        """It was answered."""
        with self._lock:
            self._running -= 1
            self._requests[route, method, status] += 1
            counts = self._latencies.setdefault(route, [0] * (len(BUCKETS) + 1))
            counts[bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, service: Service, connections: Connections | None = None) -> str:
        """Everything, as Prometheus reads it."""
        with self._lock:
            requests, running = dict(self._requests), self._running
            latencies = {route: list(counts) for route, counts in self._latencies.items()}
            seconds = dict(self._seconds)
        families = [
            ("lakescope_requests_total", "counter", "Requests that were answered.", _requests(requests)),
            ("lakescope_requests_running", "gauge", "Requests that are being answered.", [("", (), running)]),
            (
                "lakescope_request_seconds",
                "histogram",
                "Seconds until an answer was sent.",
                _histogram(latencies, seconds),
            ),
            *_of_service(service),
            *(() if connections is None else _of_connections(connections)),
            *_of_process(),
        ]
        return "".join(_family(*family) for family in families)


class Observed:
    """Stands before everything else: counts and logs every request, also those that are refused."""

    def __init__(self, app: Any, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Have a request answered, and take note."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, size = time.monotonic(), 500, 0

        async def sending(message: Any) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        self._metrics.began()
        try:
            await self._app(scope, receive, sending)
        finally:
            seconds = time.monotonic() - began
            route = route_of(scope)
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            self._metrics.ended(route, method, status, seconds)
            level = logging.ERROR if status >= 500 else logging.INFO
            log("request", level=level, method=method, route=route, status=status, seconds=seconds, bytes=size)


def route_of(scope: Any) -> str:
    """The pattern of the route that served a request."""
    if str(scope["path"]).startswith("/static/"):
        return "/static"
    return str(getattr(scope.get("route"), "path", UNKNOWN))


def _requests(counts: dict[tuple[str, str, int], int]) -> Iterator[Sample]:
    for (route, method, status), count in sorted(counts.items()):
        yield "", (("route", route), ("method", method), ("status", str(status))), count


def _histogram(latencies: dict[str, list[int]], seconds: dict[str, Any]) -> Iterator[Sample]:
    for route, counts in sorted(latencies.items()):
        total = 0
        for end, count in zip((*BUCKETS, float("inf")), counts, strict=True):
            total += count
            yield "_bucket", (("route", route), ("le", "+Inf" if end == float("inf") else f"{end:g}")), total
        yield "_sum", (("route", route),), seconds[route]
        yield "_count", (("route", route),), total


Family = tuple[str, str, str, Iterable[Sample]]


def _of_service(service: Service) -> Iterator[Family]:
    info = service.lake.info()
    states = service.jobs.counts()
    waiting = [("", (("lane", lane), ("state", state)), count) for (lane, state), count in sorted(states.items())]
    yield "lakescope_jobs", "gauge", "Jobs that wait or are worked on.", waiting
    ended = [("", (("state", state),), count) for state, count in sorted(service.jobs.ended.items())]
    yield "lakescope_jobs_ended_total", "counter", "Jobs that have ended.", ended
    files, size = service.uploads.held()
    yield "lakescope_uploads", "gauge", "Files of visitors that are kept.", [("", (), files)]
    yield "lakescope_upload_bytes", "gauge", "Bytes of these.", [("", (), size)]
    for name in ("generation", "tables", "columns", "rows"):
        yield f"lakescope_index_{name}", "gauge", f"The {name} of the index that is served.", [("", (), info[name])]
    yield "lakescope_index_bytes", "gauge", "Bytes of the index.", [("", (), info["index_bytes"])]
    version = [("", (("version", __version__), ("index_version", str(info["version"]))), 1.0)]
    yield "lakescope_info", "gauge", "Which version serves an index of which version.", version
    memory = [("", (("lane", lane),), _resident(pid)) for lane, pid in sorted(service.jobs.processes().items())]
    yield "lakescope_worker_resident_memory_bytes", "gauge", "Memory of the worker of a lane.", memory


def _of_connections(connections: Connections) -> Iterator[Family]:
    most = float(connections.limits.most)
    yield "lakescope_connections", "gauge", "Connections that are open.", [("", (), float(len(connections.open)))]
    yield "lakescope_connections_most", "gauge", "Connections that may be open.", [("", (), most)]
    refused = float(connections.refused)
    yield "lakescope_connections_refused_total", "counter", "Connections without room.", [("", (), refused)]
    ended = [("", (("reason", reason),), float(connections.ended[reason])) for reason in get_args(Reason)]
    yield "lakescope_connections_ended_total", "counter", "Connections that the server ended, by what for.", ended


def _of_process() -> Iterator[Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    yield "process_cpu_seconds_total", "counter", "CPU seconds of the server.", [("", (), cpu)]
    yield "process_resident_memory_bytes", "gauge", "Memory of the server.", [("", (), _resident(os.getpid()))]
    folder = Path("/proc/self/fd")
    if folder.exists():
        yield "process_open_fds", "gauge", "Files that the server has open.", [("", (), len(list(folder.iterdir())))]
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield "process_max_fds", "gauge", "Files that it may have open.", [("", (), float(most))]


def _resident(pid: int) -> float:
    """Bytes of memory of a process, 0 where that cannot be known."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * float(resource.getpagesize())
    except (OSError, IndexError, ValueError):
        return 0.0


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for suffix, labels, value in samples:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        lines.append(f"{name}{suffix}{f'{{{shown}}}' if shown else ''} {_number(value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
