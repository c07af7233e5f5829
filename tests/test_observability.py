"""What is going on in there: logs, timings, names of Spark's jobs, metrics of the server."""

from __future__ import annotations

import json
import logging
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lakescope
from lakescope import logs
from lakescope.errors import BadRequest, SourceError
from lakescope.faces.cli import app as cli
from lakescope.lake import Lake
from lakescope.stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Record = dict[str, Any]
SECRET = "SEKRET"
CELL = "a cell that nobody may log"


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """A file that everything is logged to meanwhile."""
    handler = logs.write_to(str(tmp_path / "log.jsonl"))
    yield tmp_path / "log.jsonl"
    logging.getLogger("lakescope").removeHandler(handler)
    logging.getLogger("lakescope").setLevel(logging.NOTSET)
    handler.close()


def _lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# Logs -----------------------------------------------------------------------------------------------------------------


def test_a_line_says_when_what_and_how_grave(log_file: Path) -> None:
    logs.log("event", table="t", seconds=0.12345678, nothing=None, more=["x", {"y": 1}])
    logs.log("failed", level=logging.ERROR, error=SourceError(f"no s3://K:{SECRET}@b/x", hint="h", code="c"))
    first, second = _lines(log_file)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", first.pop("time"))
    assert first == {
        **{"level": "info", "event": "event", "table": "t", "seconds": 0.123457, "nothing": None},
        "more": ["x", {"y": 1}],
    }
    assert (second["level"], second["error"], second["reason"]) == ("error", "SourceError", "no s3://b/x")


def test_logs_hold_no_secrets_and_odd_names_do_not_stop_them(log_file: Path) -> None:
    uri = f"https://me:{SECRET}@host/x.csv?sig={SECRET}"
    logs.log("event", uri=uri, inner={"list": [uri]}, text=f"password={SECRET}", name="caf\udce9.csv", path=Path("x"))
    (line,) = _lines(log_file)
    assert SECRET not in log_file.read_text()
    assert line["uri"] == "https://host/x.csv"
    assert line["name"] == "caf\\udce9.csv"


def test_nothing_is_said_unless_somebody_listens(capfd: pytest.CaptureFixture[str]) -> None:
    logs.log("event", level=logging.CRITICAL)
    assert capfd.readouterr() == ("", "")


def test_the_log_is_its_owners(log_file: Path) -> None:
    assert stat.S_IMODE(log_file.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot write the log"):
        logs.write_to(str(tmp_path))


# A build --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    (folder / "good.csv").write_text("# " + CELL + "\nid,name\n" + "".join(f"{i},{CELL} {i}\n" for i in range(50)))
    (folder / "bad.parquet").write_bytes(b"PAR1 and no more")
    (folder / "notes.bin").write_bytes(bytes(range(256)) * 10)
    return folder


def _tags(spark: SparkSession) -> set[str]:
    store = spark.sparkContext._jsc.sc().statusStore()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    listed = store.jobsList(None)
    found = set()
    for number in range(listed.size()):
        tags = listed.apply(number).jobTags()
        found |= {tags.apply(place) for place in range(tags.size())}
    return found


def test_a_build_tells_what_it_does(lake: Path, log_file: Path, tmp_path: Path, spark: SparkSession) -> None:
    built = lakescope.index(lake, tmp_path / "x.idx", spark=spark)
    lines = _lines(log_file)
    assert CELL not in log_file.read_text()
    stages = [line for line in lines if line["event"] == "stage"]
    names = ["plan", "start Spark", "scan", "group values", "write the inverted index"]
    assert [line["stage"] for line in stages] == names
    units = {line["table"]: line for line in lines if line["event"] == "unit"}
    assert set(units) == {"good.csv", "bad.parquet"}
    assert (units["good.csv"]["rows"], units["good.csv"]["failed"]) == (50, False)
    assert units["bad.parquet"]["failed"] is True
    assert [(line["table"], line["code"]) for line in lines if line["event"] == "problem"] == [
        ("notes.bin", "unknown-format")
    ]
    (published,) = [line for line in lines if line["event"] == "published"]
    assert (published["tables"], published["rows"], published["generation"]) == (1, 50, 1)
    # The same stages are kept in the index.
    kept = built.timings()
    assert [stage.stage for stage in kept] == names
    scan = kept[2]
    assert (scan.rows, scan.bytes) == (50, (lake / "good.csv").stat().st_size)
    assert scan.workers is not None
    assert 0 < scan.workers < 600
    assert all(stage.wall >= 0 and stage.cpu >= 0 for stage in kept)
    # Whoever looks at Spark's pages sees what the jobs are for.
    # (A session puts its own number before a tag.)
    tags = _tags(spark)
    for name in ("scan 2 tables", "group values (step 1 of 2)", "write the inverted index (step 2 of 2)"):
        assert any(tag.endswith(f"lakescope: {name}") for tag in tags), tags
    # Updates and compactions do the same.
    (lake / "more.csv").write_text("id\n1\n2\n")
    built.update()
    assert [stage.stage for stage in built.timings()] == ["compare", "plan", "scan here"]
    built.compact(spark=spark)
    names = ["start Spark", "copy what is left", "group values", "write the inverted index"]
    assert [stage.stage for stage in built.timings()] == names
    works = [line["work"] for line in _lines(log_file) if line["event"] == "published"]
    assert works == ["index", "update", "compact"]


def test_stages_that_fail_are_measured_and_only_so_many_kept() -> None:
    stages = Stages("any")
    with pytest.raises(ZeroDivisionError), stages.measure("one"):
        _ = 1 / 0
    assert [stage.stage for stage in stages.done] == ["one"]
    for _ in range(2000):
        with stages.measure("more"):
            pass
    assert len(stages.done) == 1000


# The command line -----------------------------------------------------------------------------------------------------


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command as a shell would, in this process."""
    logger = logging.getLogger("lakescope")
    before = list(logger.handlers)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["lakescope", *arguments])
        code: Any = 0
        try:
            cli.run()
        except SystemExit as ended:
            code = ended.code
        finally:
            for handler in [each for each in logger.handlers if each not in before]:
                logger.removeHandler(handler)
                handler.close()
            logger.setLevel(logging.NOTSET)
        told = capsys.readouterr()
        return int(code or 0), told.out, told.err

    return run


def test_a_command_logs_how_it_ended(ran: Any, demo_index: Lake, tmp_path: Path, monkeypatch: Any) -> None:
    log = tmp_path / "log.jsonl"
    assert ran("--log-file", str(log), "info", demo_index.path)[0] == 0
    assert ran("--log-file", str(log), "info", f"http://K:{SECRET}@127.0.0.1:1/x.idx")[0] == 2
    ended = [line for line in _lines(log) if line["event"] == "command"]
    assert [(line["command"], line["exit"]) for line in ended] == [("info", 0), ("info", 2)]
    assert [line["event"] for line in _lines(log)].count("failed") == 1
    assert SECRET not in log.read_text()
    monkeypatch.setenv(logs.VARIABLE, str(tmp_path / "other.jsonl"))
    assert ran("info", demo_index.path)[0] == 0
    assert (tmp_path / "other.jsonl").exists()


def test_profile_says_where_the_time_went(ran: Any, demo_index: Lake, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("customer\nC1\nC2\n")
    code, out, err = ran("--profile", "join", demo_index.path, str(tmp_path / "q.csv"), "--on", "customer")
    assert code == 0
    assert "stage" not in out
    stages = [line.split("  ")[0] for line in err.splitlines() if line.strip()]
    assert {"open", "read the query", "all"} <= set(stages)


def test_timings_of_an_index(ran: Any, demo_index: Lake) -> None:
    code, out, _ = ran("timings", demo_index.path, "--format", "json")
    assert code == 0
    assert [stage["stage"] for stage in json.loads(out)][:3] == ["plan", "start Spark", "scan"]
    assert "scan" in ran("timings", demo_index.path)[1]


def test_errors_on_the_command_line_hold_no_secrets(ran: Any, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("a\n1\n")
    place = f"nope://KEY:{SECRET}@host/x.csv?token={SECRET}"
    for arguments in (["count", place], ["--debug", "count", place], ["autojoin", place, str(tmp_path / "q.csv")]):
        code, out, err = ran(*arguments)
        assert code in (1, 2)
        assert SECRET not in out + err, arguments


# Metrics --------------------------------------------------------------------------------------------------------------

_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (-?[0-9.e+-]+)')


def _metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by name, read as strictly as the format is written down; each belongs to a family that was announced."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    family = kind = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            assert len(line.split(" ", 3)) == 4
        elif line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert kind in ("counter", "gauge", "histogram")
            assert family not in found
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            ends = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            assert match[1] in {family + end for end in ends}, line
            assert (kind == "counter") == family.endswith("_total"), line
            labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            found.setdefault(match[1], []).append((labels, float(match[3])))
    return found


def test_metrics(demo_index: Lake, log_file: Path) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    pytest.importorskip("fastapi")
    from lakescope.faces.serving.app import create_app
    from lakescope.faces.serving.safety import Rules

    app = create_app(demo_index, Rules(token="a secret of some length"))
    with testclient.TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/metrics").status_code == 401
        client.headers["authorization"] = "Bearer a secret of some length"
        for _ in range(3):
            assert client.get(f"/api/v1/tables?like={CELL}").status_code == 200
        assert client.get(f"/no/such/{CELL}").status_code == 404
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = _metrics(answer.text)
    requests = {(each["route"], each["status"]): count for each, count in found["lakescope_requests_total"]}
    assert requests["/api/v1/tables", "200"] == 3
    assert requests["unknown", "401"] == 1
    assert requests["unknown", "404"] == 1
    assert CELL not in answer.text
    buckets = [
        (each["le"], count)
        for each, count in found["lakescope_request_seconds_bucket"]
        if each["route"].endswith("/tables")
    ]
    assert buckets[-1] == ("+Inf", 3)
    assert [count for _, count in buckets] == sorted(count for _, count in buckets)
    info = demo_index.info()
    for name in ("generation", "tables", "columns", "rows", "bytes"):
        wanted = info["index_bytes"] if name == "bytes" else info[name]
        assert found[f"lakescope_index_{name}"] == [({}, wanted)]
    assert found["process_resident_memory_bytes"][0][1] > 1e7
    assert found["process_open_fds"][0][1] >= 3
    assert {(each["lane"], each["state"]) for each, _ in found["lakescope_jobs"]} == {
        (lane, state) for lane in ("quick", "long") for state in ("queued", "running")
    }
    logged = [line for line in _lines(log_file) if line["event"] == "request"]
    assert [line["status"] for line in logged][:4] == [401, 200, 200, 200]
    assert logged[1]["route"] == "/api/v1/tables"
    assert CELL not in log_file.read_text()
    assert "a secret of" not in log_file.read_text()


def test_labels_are_escaped() -> None:
    pytest.importorskip("fastapi")
    from lakescope.faces.serving.metrics import _family

    text = _family("x", "gauge", "about", [("", (("name", 'a"b\\c\nd'),), 0.5)])
    assert text.splitlines()[-1] == 'x{name="a\\"b\\\\c\\nd"} 0.5'
    assert _metrics(text)["x"][0][1] == 0.5
