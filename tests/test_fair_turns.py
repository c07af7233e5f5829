"""Many who ask much keep nobody else from being answered: turns, places in queues, room for files."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from lakescope.faces.rest import api
from lakescope.faces.serving.service import Service

pytest.importorskip("fastapi")
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from lakescope.errors import LakescopeError
from lakescope.faces.serving import jobs as queues
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.jobs import Job, Jobs
from lakescope.faces.serving.safety import Guard, Rules
from lakescope.faces.serving.uploads import Uploads
from lakescope.faces.serving.visitors import Claim, Owner, Visitor, address_group, giving_way, plain_address
from lakescope.faces.serving.worker import Worker
from lakescope.lake import Lake

#: Fifty who mean harm: from one address without cookies (a new visitor with every request), from one address with
#: cookies, from an address each.
CROWDS: dict[str, Callable[[int], Visitor]] = {
    "without cookies": lambda n: Visitor(f"fresh {n}", "10.0.0.1", fresh=True),
    "with cookies": lambda n: Visitor(f"visitor {n % 50}", "10.0.0.1"),
    "many addresses": lambda n: Visitor(f"fresh {n}", f"10.0.1.{n % 50}", fresh=True),
}
STRANGERS = {"from elsewhere": Visitor("stranger", "10.9.9.9"), "from their address": Visitor("stranger", "10.0.0.1")}


@dataclass
class Gate:
    """Jobs as a worker would do them, in what order, once it may."""

    open: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    order: list[Any] = field(default_factory=list)

    def ask(self, _: Worker, question: str, parameters: dict[str, Any], *__: Any) -> dict[str, Any]:
        if question == "warm":
            return {}
        self.begun.set()
        self.open.wait(60)
        self.order.append(parameters.get("who", parameters))
        return {"records": [["x"]], "notes": []}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(Worker, "ask", lambda worker, *told: gate.ask(worker, *told))
    yield gate
    gate.open.set()


@pytest.fixture
def jobs(gate: Gate, demo_index: Lake) -> Iterator[Jobs]:
    """Queues whose worker is busy with one job until the gate is opened."""
    jobs = Jobs(demo_index.path, 1 << 30)
    jobs.submit(Visitor("first", "10.8.8.8"), "busy", {"who": "first"}, lane="long", limit=60)
    assert gate.begun.wait(30)
    yield jobs
    gate.open.set()
    jobs.close()


def ask(jobs: Jobs, visitor: Visitor, about: Any = "", *, shared: bool = False) -> Job:
    asked = {"who": str(visitor), "about": about}
    owner = "" if shared else visitor
    return jobs.submit(owner, "slow", asked, lane="long", limit=60, asker=visitor)


def crowd_in(jobs: Jobs, crowd: str, *, shared: bool) -> tuple[list[Job], int]:
    """What fifty ask, ten times each, and how often they were refused."""
    asked, refused = [], 0
    for n in range(500):
        try:
            asked.append(ask(jobs, CROWDS[crowd](n), n, shared=shared))
        except LakescopeError:
            refused += 1
    return asked, refused


# Turns ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True], ids=["about files", "everybody's"])
@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("crowd", CROWDS)
def test_a_question_of_a_stranger_is_answered_soon(
    crowd: str, stranger: str, shared: bool, jobs: Jobs, gate: Gate
) -> None:
    asked, refused = crowd_in(jobs, crowd, shared=shared)
    assert refused
    assert len(asked) > 5
    mine = ask(jobs, STRANGERS[stranger], shared=shared)
    most = 1 + jobs.before(mine)
    gate.open.set()
    assert mine.finished.wait(60)
    assert mine.result()
    # Nobody of the crowd was served before: each may come first once, by address or, of one address, by cookie.
    assert gate.order.index("stranger") <= most <= 52


def test_turns_go_around_addresses_and_then_visitors(jobs: Jobs, gate: Gate) -> None:
    first, second = Visitor("a1", "10.0.0.1"), Visitor("a2", "10.0.0.1")
    other, late = Visitor("b", "2001:db8::1"), Visitor("c", "10.0.0.3")
    asked = [ask(jobs, who, n) for n, who in enumerate([first, first, first, second, other, other, late])]
    gate.open.set()
    assert all(each.finished.wait(60) for each in asked)
    assert gate.order[1:] == ["a1", "b", "c", "a2", "b", "a1", "a1"]


def test_who_has_less_waiting_takes_the_place_of_the_latest_of_who_has_most(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_WAITING", 6)
    heavy = [ask(jobs, Visitor("a", "10.0.0.1"), n) for n in range(4)]
    light = [ask(jobs, Visitor("b", "10.0.0.2"), n) for n in range(2)]
    mine = ask(jobs, Visitor("c", "10.0.0.3"))
    assert [each.state for each in (*heavy, *light, mine)] == ["queued"] * 3 + ["failed"] + ["queued"] * 3
    with pytest.raises(LakescopeError, match="gave way to one of somebody who has fewer") as told:
        heavy[3].result()
    assert told.value.hint is not None
    with pytest.raises(LakescopeError, match="6 questions are waiting"):
        ask(jobs, Visitor("a", "10.0.0.1"), 9)
    again = ask(jobs, Visitor("a", "10.0.0.1"), 0)
    assert again is heavy[0], "what is asked already is not asked again"


def test_what_is_everybodys_is_paid_by_all_who_ask_for_it(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_WAITING", 4)
    heavy, light = Visitor("a", "10.0.0.1"), Visitor("b", "10.0.0.2")
    asked = [jobs.submit("", "slow", {"n": n}, lane="long", limit=60, asker=heavy) for n in range(4)]
    assert jobs.submit("", "slow", {"n": 3}, lane="long", limit=60, asker=light) is asked[3]
    ask(jobs, Visitor("c", "10.0.0.3"))
    assert [each.state for each in asked] == ["queued", "queued", "failed", "queued"], (
        "somebody else waits for the last"
    )


def test_many_of_one_address_do_not_crowd_out_who_waits_with_them() -> None:
    job = Job("id", "", "keys", "long", {}, 1.0)
    for n in range(200):
        job.charge(Owner("10.0.0.1", str(n)))
    job.charge(Owner("10.9.9.9", "stranger"))
    for n in range(200):
        job.charge(Owner("10.0.0.1", str(n)))
        job.charge(Owner("10.0.0.2", str(n)))
    assert Owner("10.9.9.9", "stranger") in job.owners
    assert len(job.owners) <= queues._SHARING


def test_work_that_is_begun_and_cancelled_again_and_again_is_forgotten(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_KEPT_BYTES", 100 * queues._LEAST_BYTES)
    visitor = Visitor("a", "10.0.0.1")
    for n in range(500):
        jobs.cancel(ask(jobs, visitor, n), visitor)
    assert len(jobs._jobs) < 110


# Over HTTP ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crowd", CROWDS)
def test_strangers_are_answered_and_their_files_are_taken(crowd: str, gate: Gate, demo_index: Lake) -> None:
    app = create_app(demo_index, Rules(largest=200_000), memory=1 << 30)

    def client(address: str) -> TestClient:
        return TestClient(app, "http://127.0.0.1", client=(address, 1))

    with client("10.8.8.8"):
        statuses: set[int] = set()
        those = [client(f"10.0.1.{n}" if crowd == "many addresses" else "10.0.0.1") for n in range(50)]
        for n in range(500):
            each = those[n % 50]
            if crowd != "with cookies":
                each.cookies.clear()
            asked = {"minimum": 0.5 + n / 2_000, "wait": 0}
            statuses.add(each.get("/api/v1/inclusions", params=asked).status_code)
        assert statuses == {202, 429}
        strangers = [client("10.9.9.9"), client("10.0.0.1")]
        waiting = []
        for each in strangers:
            each.get("/")  # a browser has a cookie by now
            answer = each.get("/api/v1/drift", params={"minimum": 0.3 + 0.1 * len(waiting), "wait": 0})
            assert answer.status_code == 202, answer.text
            waiting.append(answer.headers["location"])
        gate.open.set()
        for each, location in zip(strangers, waiting, strict=True):
            assert each.get(f"{location}/answer", params={"wait": 60}).status_code == 200
            sent = each.post("/api/v1/uploads", files={"file": ("mine.csv", b"a\n1\n")})
            assert sent.status_code == 201, sent.text


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("crowd", CROWDS)
def test_a_file_of_a_stranger_is_taken(crowd: str, stranger: str) -> None:
    files = Uploads(1_000)
    try:
        refused = 0
        for n in range(100):
            try:
                files.add(CROWDS[crowd](n), f"{n}.csv", io.BytesIO(b"x" * 1_000))
            except LakescopeError:
                refused += 1
        assert refused
        number, size = files.held()
        assert size == 20_000
        mine = files.add(STRANGERS[stranger], "mine.csv", io.BytesIO(b"x" * 500))
        assert files.find(STRANGERS[stranger], mine.id) == mine
        assert files.held() == (number, size - 500)
    finally:
        files.close()


def test_files_of_whoever_has_most_make_room_the_longest_unused_first() -> None:
    files = Uploads(100)
    heavy, light, new = Visitor("a", "10.0.0.1"), Visitor("b", "10.0.0.2"), Visitor("c", "10.0.0.3")
    try:
        of_heavy = [files.add(heavy, f"{n}.csv", io.BytesIO(b"x" * 100)) for n in range(15)]
        of_light = [files.add(light, f"{n}.csv", io.BytesIO(b"x" * 100)) for n in range(5)]
        files.find(heavy, of_heavy[0].id)
        for n in range(6):
            files.add(new, f"{n}.csv", io.BytesIO(b"x" * 100))
        assert files.of_visitor(light) == of_light[::-1], "who has less than a new one would have loses nothing"
        assert len(files.of_visitor(heavy)) == 9
        with pytest.raises(LakescopeError, match="to make room for somebody who has fewer"):
            files.find(heavy, of_heavy[1].id)
        assert not of_heavy[1].path.exists()
        assert files.find(heavy, of_heavy[0].id).path.exists()
        files.add(new, "more.csv", io.BytesIO(b"x" * 100))
        assert (len(files.of_visitor(heavy)), len(files.of_visitor(new))) == (8, 7)
        files.add(light, "more.csv", io.BytesIO(b"x" * 100))
        assert (len(files.of_visitor(heavy)), len(files.of_visitor(light))) == (7, 6)
        with pytest.raises(LakescopeError, match="as many files"):
            files.add(new, "too much.csv", io.BytesIO(b"x" * 100))
    finally:
        files.close()


def test_small_files_take_up_room_too() -> None:
    files = Uploads(1_000_000)
    try:
        for n in range(2_000):
            files.add(Visitor(str(n), "10.0.0.1", fresh=True), "a.csv", io.BytesIO(b"a\n"))
        with pytest.raises(LakescopeError, match="as many files"):
            files.add(Visitor("one more", "10.0.0.1", fresh=True), "a.csv", io.BytesIO(b"a\n"))
        assert files.held()[0] == 2_000
        files.add(Visitor("me", "10.0.0.2"), "a.csv", io.BytesIO(b"a\n"))
        assert files.held()[0] == 2_000
    finally:
        files.close()


def test_files_on_their_way_give_way_to_those_of_a_stranger() -> None:
    asyncio.run(send_files())


async def send_files() -> None:
    """Files that never come to an end keep nobody from sending one."""
    taken: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        taken.append(scope["client"][0])

    refused: list[str] = []
    displaced: list[str] = []

    def refuse(scope: Any, error: LakescopeError) -> Any:
        async def answer(*_: Any) -> None:
            refused.append(scope["client"][0])

        return answer

    guard = Guard(app, Rules(largest=1_000_000), refuse)

    async def sent(address: str, size: int, *, whole: bool) -> None:
        pieces = asyncio.Queue[Any]()
        pieces.put_nowait({"type": "http.request", "body": b"x", "more_body": not whole})
        headers = [(b"host", b"127.0.0.1"), (b"content-length", str(size).encode())]
        scope = {"type": "http", "method": "POST", "path": "/api/v1/uploads", "headers": headers, "query_string": b""}
        try:
            await guard({**scope, "client": (address, 1)}, pieces.get, None)
        except LakescopeError as error:
            displaced.append(error.message)

    slow = [asyncio.create_task(sent("10.0.0.1", 1_000_000, whole=False)) for _ in range(6)]
    slow += [asyncio.create_task(sent(f"10.0.1.{n}", 1_000_000, whole=False)) for n in range(20)]
    await asyncio.sleep(0)
    assert len(guard._bodies._bodies) == 8
    for address, size in (("10.9.9.9", 500_000), ("10.0.1.1", 300_000)):
        await sent(address, size, whole=True)
        assert taken.pop() == address
    async with asyncio.timeout(30):
        while len(refused) + len(displaced) + len(guard._bodies._bodies) < len(slow):
            await asyncio.sleep(0)
    assert displaced
    assert all("gave way" in each for each in displaced)
    for each in slow:
        each.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert guard._bodies._bodies == []


# The rule itself ------------------------------------------------------------------------------------------------------

OWNERS = st.builds(Owner, st.sampled_from("abc"), st.sampled_from("xyz"))
CLAIMS = st.lists(st.tuples(st.lists(OWNERS, min_size=1, max_size=2, unique=True), st.integers(1, 9)), max_size=20)


@settings(max_examples=300, deadline=None)
@given(CLAIMS, OWNERS, st.integers(1, 9), st.integers(1, 60), st.integers(1, 60))
def test_who_gives_way_has_more_than_the_newcomer(
    made: list[tuple[list[Owner], int]], owner: Owner, size: int, room: int, each: int
) -> None:
    claims = [Claim(tuple(owners), weight, n) for n, (owners, weight) in enumerate(made)]
    going = giving_way(claims, Claim((owner,), size, None), room=room, each=each)
    if going is None:
        return
    left = [claim for claim in claims if claim.item not in going]
    mine = sum(claim.size for claim in left if owner.address in {one.address for one in claim.owners}) + size
    assert sum(claim.size for claim in left) + size <= room
    assert mine <= each
    for number in going:
        for one in claims[number].owners:
            theirs = sum(claim.size for claim in claims if one.address in {each.address for each in claim.owners})
            assert one.address == owner.address or theirs > size
            assert one != owner, "nobody gives way to themselves"


@pytest.mark.parametrize(
    ("text", "plain", "group"),
    [
        ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("10.0.0.1:8080", "10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("[2001:db8::1]:99", "2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::1", "fe80::/64"),
        ("testclient", "", "testclient"),
        ("", "", ""),
        ("999.1.1.1", "", "999.1.1.1"),
    ],
)
def test_addresses_are_counted_by_what_somebody_is_given(text: str, plain: str, group: str) -> None:
    assert (plain_address(text), address_group(text)) == (plain, group)


def test_who_waits_is_there_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who had not been heard of for a while, because the answer was waited for, was taken to have gone."""
    monkeypatch.setattr(api, "_HEARD", 0.0)
    job = Job("1", "", "keys", "long", {}, 60.0)
    job.meet("waits")
    job.seen["waits"] -= 1_000
    asyncio.run(api.finished(job, 0.1, "waits"))
    job.meet("other")
    assert not job.leave("other")


def test_the_next_page_asks_the_same() -> None:
    scope = {"type": "http", "method": "GET", "path": "/x", "query_string": b"missing=a&missing=b&token=t&limit=5"}
    page = api.Page(Request({**scope, "headers": []}), 5, 0)
    assert page.meta(9)["next"] == "/x?missing=a&missing=b&limit=5&offset=5"


def test_one_address_takes_a_part_of_the_threads(demo_index: Lake) -> None:
    service = Service(demo_index, largest=1_000, memory=1 << 30)
    try:
        with ExitStack() as asked:
            service._asking["10.0.0.1"] = 20
            with pytest.raises(LakescopeError, match="of your address are being answered"):
                asked.enter_context(service._lane(Visitor("a", "10.0.0.1")))
            asked.enter_context(service._lane(Visitor("b", "10.0.0.2")))
        assert service._asking == {"10.0.0.1": 20}
    finally:
        service.close()


def test_a_file_is_given_up_only_for_one_that_is_kept(tmp_path: Path) -> None:
    uploads = Uploads(1_000)
    try:
        for number in range(20):
            uploads.add("me", f"{number}.csv", io.BytesIO(b"a\n1\n"))
        place = uploads.place()
        place.write_bytes(b"x" * 900)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lakescope.faces.serving.uploads.giving_way", lambda *_, **__: None)
            with pytest.raises(LakescopeError, match="as many files as it may"):
                uploads.keep("me", "made.parquet", place, "made")
        assert len(uploads.of_visitor("me")) == 20
    finally:
        uploads.close()
