"""Files that were cut off, flipped or lost: told by name, never a wrong answer, and mended as far as it can be."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lakescope
from helpers import crashes
from lakescope.errors import BadRequest, IndexDamaged, IndexLocked, LakescopeError
from lakescope.faces.cli.app import app
from lakescope.lake import Lake
from lakescope.store import IndexWriter
from lakescope.store.arrays import ArrayFile
from lakescope.store.manifest import MANIFEST, Manifest, SegmentFile, file_checksum

Damage = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, with a table that was replaced, one that was removed and one that cannot be read."""
    folder = tmp_path_factory.mktemp("damage")
    for number in range(4):
        crashes.write_table(folder / "lake" / f"t{number}.csv", number)
    (folder / "lake" / "broken.parquet").write_bytes(b"PAR1 no")
    with crashes.without_spark():
        lakescope.index(folder / "lake", folder / "lake.idx")
    crashes.write_table(folder / "lake" / "t1.csv", 11)
    (folder / "lake" / "t3.csv").unlink()
    lakescope.open(folder / "lake.idx").update()
    return folder / "lake.idx"


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy.idx"))


def files_of(index: Path) -> list[SegmentFile]:
    return Manifest.load(index).files


def answers(index: Path) -> dict[str, Any]:
    """What an index says to every kind of question, or that it refuses to."""
    found: dict[str, Any] = {}
    questions: dict[str, Callable[[Lake], Any]] = {
        "tables": lambda lake: lake.tables().to_pylist(),
        "columns": lambda lake: lake.columns().to_pylist(),
        "problems": lambda lake: lake.problems().to_pylist(),
        "profile": lambda lake: lake.profile("t2.csv").to_dict(),
        "join": lambda lake: lake.joinable("t2.csv", on="key").to_dicts(),
        "lsh": lambda lake: lake.joinable("t2.csv", on="key", threshold=0.2, engine="lsh").to_dicts(),
        "correlated": lambda lake: lake.correlated("t2.csv", key="key", target="number").to_dicts(),
        "inclusions": lambda lake: lake.inclusions(minimum=0.3).to_dicts(),
        "history": lambda lake: lake.history("t1.csv").to_dicts(),
        "drift": lambda lake: lake.drift("t1.csv", minimum=0).to_dicts(),
    }
    for name, ask in questions.items():
        try:
            found[name] = rounded(ask(lakescope.open(index)))
        except (IndexDamaged, BadRequest) as error:
            found[name] = error
    return found


def rounded(answer: Any) -> Any:
    """Numbers to nine digits: whether kernels are compiled already may change the last ones."""
    if isinstance(answer, float):
        return float(f"{answer:.9g}")
    if isinstance(answer, dict):
        return {name: rounded(value) for name, value in answer.items()}
    return [rounded(value) for value in answer] if isinstance(answer, list | tuple) else answer


def damages(size: int, seed: int) -> Iterator[tuple[str, Damage]]:
    """Bytes flipped at several places of a file, and the file cut off at several lengths."""
    places = sorted(
        {0, 5, size // 3, size // 2, size - 9, size - 1, random.Random(seed).randrange(size)} & set(range(size))
    )
    for at in places:
        yield f"byte {at} flipped", lambda data, at=at: data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]
    for length in sorted({0, 1, size // 2, size - 1}):
        yield f"cut to {length}", lambda data, length=length: data[:length]
    yield "longer", lambda data: data + b"\0"


def test_damage_is_told_by_name_and_never_answers_wrong(whole: Path, copy: Path) -> None:
    """Every file of an index, flipped and cut at several places."""
    right = answers(whole)
    assert not any(isinstance(answer, LakescopeError) for answer in right.values()), right
    tried = refused = 0
    asked: set[str] = set()
    for number, file in enumerate(files_of(copy)):
        path = copy / file.path
        data = path.read_bytes()
        for turn, (told, damage) in enumerate(damages(len(data), number)):
            tried += 1
            path.write_bytes(damage(data))
            try:
                wrong = lakescope.open(copy)._index.verify()
            except IndexDamaged as error:
                wrong = [error.message]
            assert [file.path in each for each in wrong] == [True], f"{file.path}, {told}: {wrong}"
            # Questions take longer than the damage: they are asked once for every kind of file, each at another place.
            if turn == len(asked) % 12 and file.kind not in asked:
                asked.add(file.kind)
                for question, answer in answers(copy).items():
                    if isinstance(answer, LakescopeError):
                        refused += 1
                        assert file.path in answer.message, f"{file.path}, {told}: {question} says {answer}"
                    else:
                        assert answer == right[question], f"{file.path}, {told}: {question} is answered wrong"
            path.write_bytes(data)
    assert tried > 200
    assert refused > 20
    assert asked == {file.kind for file in files_of(copy)}
    assert answers(copy) == right


WRECK = """
import random, sys
from pathlib import Path
import lakescope
from lakescope.errors import LakescopeError
from lakescope.store import index as index_module
from lakescope.store.manifest import Manifest

index_module.CHECKED_BYTES = 0  # as if every file were too large to be read whole before it is used
index, dice = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
files = [f for f in Manifest.load(index).files if f.path.endswith((".bin", ".arrow"))]
lakescope.open(index).warm()
for turn in range(int(sys.argv[3])):
    path = index / dice.choice(files).path
    whole = path.read_bytes()
    data = bytearray(whole)
    for _ in range(dice.randrange(1, 4)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)
    print(turn, path.name, flush=True)
    for warm in (False, True):
        for ask in (
            lambda lake: lake.joinable("t2.csv", on="key"),
            lambda lake: lake.joinable("t2.csv", on="key", threshold=0.2, engine="lsh"),
            lambda lake: lake.joinable("t0.csv", on="other", threshold=0.2, verify=True),
            lambda lake: lake.correlated("t2.csv", key="key", target="number"),
            lambda lake: lake.inclusions(minimum=0.3, verify=True),
        ):
            try:
                lake = lakescope.open(index)
                if warm:
                    lake.warm()
                ask(lake)
            except LakescopeError:
                pass
    path.write_bytes(whole)
"""


def wreck(index: Path, seed: int, turns: int) -> None:
    """Ask an index whose files are flipped without anybody having looked at their checksums."""
    command = [sys.executable, "-c", WRECK, str(index), str(seed), str(turns)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-3000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_large_files_that_are_damaged_crash_nothing(copy: Path, seed: int) -> None:
    """Files too large to be checked first may answer wrong until `verify`, but only with numbers they hold."""
    wreck(copy, seed, 150)


# --- verify --deep ----------------------------------------------------------------------------------------------------


def rewritten(index: Path, kind: str, change: Callable[[Any], Any]) -> None:
    """Change what a file says and write it as a whole one, checksums and all: what only a deep look finds."""
    body = json.loads((index / MANIFEST).read_text())
    manifest = Manifest.load(index)
    position = next(i for i, file in enumerate(manifest.files) if file.kind == kind)
    file = manifest.files[position]
    path = index / file.path
    if path.suffix == ".bin":
        arrays = {name: array.copy() for name, array in lakescope.open(index)._index.arrays(file).items()}
        change(arrays)
        out = ArrayFile(path.parent, kind, {name: array.dtype for name, array in arrays.items()})
        out.append(**arrays)
        (path.parent / out.close().path).replace(path)
    elif path.suffix == ".arrow":
        with pa.ipc.open_file(path.read_bytes()) as source:
            table = change(source.read_all())
        with pa.ipc.new_file(str(path), table.schema) as sink:
            sink.write_table(table)
    else:
        pq.write_table(change(pq.read_table(path)), path)
    rows = body["files"][position]["rows"]
    made = SegmentFile(file.path, kind, rows, path.stat().st_size, file_checksum(path))
    files = [made if each is file else each for each in manifest.files]
    changed = Manifest(**{**{n: getattr(manifest, n) for n in manifest.__slots__}, "files": files})
    (index / MANIFEST).write_text(changed.dump())


def swap(name: str) -> Callable[[Any], None]:
    def change(arrays: Any) -> None:
        arrays[name][[0, -1]] = arrays[name][[-1, 0]]

    return change


def put(name: str, value: int) -> Callable[[Any], None]:
    def change(arrays: Any) -> None:
        arrays[name][-1] = value

    return change


def field_set(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        field = table.schema.get_field_index(name)
        cells = [value, *table[name].to_pylist()[1:]]
        return table.set_column(field, table.schema.field(name), pa.array(cells, table.schema.field(name).type))

    return change


def test_a_sound_index_is_found_sound(whole: Path) -> None:
    found = lakescope.open(whole).verify(deep=True)
    assert list(found) == []
    assert found.info["references"] > 1000
    assert found.info["files"] == len(files_of(whole))


@pytest.mark.parametrize(
    ("kind", "change", "check"),
    [
        ("tokens", swap("hashes"), "tokens"),
        ("tokens", put("groups", 10**6), "tokens"),
        ("tokens", swap("by_group"), "tokens"),
        ("tokens", put("directory", 3), "tokens"),
        ("postings", put("sets", 10**6), "postings"),
        ("postings", put("sets", -1), "postings"),
        ("postings", put("widths", 7), "sets"),
        ("postings", put("starts", 1), "postings"),
        ("sets", put("groups", 10**6), "sets"),
        ("sets", put("sizes", 12345), "sets"),
        ("sets", put("ids", 1), "set"),
        ("forest", put("sets", 10**6), "forest"),
        ("forest", swap("values"), "forest"),
        ("grams", put("sets", 10**6), "grams"),
        ("grams", swap("hashes"), "grams"),
        ("tombstones", field_set("segment", "segments/none"), "tombstone"),
        ("tombstones", field_set("table", "nobody.csv"), "tombstone"),
        ("tables", field_set("rows", 7), "column"),
        ("tables", field_set("columns", 9), "column"),
        ("columns", field_set("column", "stranger"), "sketch"),
        ("sketches", field_set("distinct", b"nothing"), "sketch"),
        ("sketches", field_set("signature", b"short"), "sketch"),
        ("keys", field_set("key", 1), "key"),
        ("keys", field_set("hashes", b"\0" * 16), "key"),
        ("pairs", field_set("key", 1), "pair"),
        ("pairs", field_set("values", b"\0" * 16), "pair"),
    ],
)
def test_a_contradiction_is_found(copy: Path, kind: str, change: Any, check: str) -> None:
    rewritten(copy, kind, change)
    lake = lakescope.open(copy)
    lake.verify()
    found = lake.verify(deep=True)
    assert check in {each.check for each in found}, found


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of columns that are versions of each other, large enough to have bitmaps."""
    folder, dice = tmp_path_factory.mktemp("versions"), random.Random(3)
    rows = [[f"v{row}" if dice.random() < 0.7 else "" for _ in range(12)] for row in range(900)]
    lines = [",".join(row) for row in [[f"c{column}" for column in range(12)], *rows]]
    (folder / "lake").mkdir()
    (folder / "lake" / "t.csv").write_text("\n".join(lines) + "\n")
    with crashes.without_spark():
        lakescope.index(folder / "lake", folder / "lake.idx")
    return folder / "lake.idx"


@pytest.mark.parametrize("change", [None, put("bits", 1), swap("bits"), put("pages", 5), swap("page_starts")])
def test_bitmaps_are_compared_with_their_sets(versions: Path, tmp_path: Path, change: Any) -> None:
    copy = Path(shutil.copytree(versions, tmp_path / "copy.idx"))
    if change is not None:
        rewritten(copy, "sets", change)
    found = lakescope.open(copy).verify(deep=True)
    assert [each.detail for each in found] == ["bitmaps that are not those of their groups"] * (change is not None)


def test_damage_is_found_deep_as_well(copy: Path) -> None:
    file = files_of(copy)[0]
    data = bytearray((copy / file.path).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / file.path).write_bytes(data)
    found = lakescope.open(copy).verify(deep=True)
    assert ("damaged", file.path) in {(each.check, each.file) for each in found}


# --- repair -----------------------------------------------------------------------------------------------------------


def test_nothing_to_repair(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file() and path.name != ".lock"}
    assert list(lakescope.repair(copy, dry_run=True)) == []
    assert list(lakescope.repair(copy)) == []
    assert before == {path: path.read_bytes() for path in copy.rglob("*") if path.is_file() and path.name != ".lock"}


@pytest.mark.parametrize("how", ["lost", "flipped", "cut"])
def test_a_lost_manifest_is_restored(copy: Path, whole: Path, how: str) -> None:
    text = (copy / MANIFEST).read_bytes()
    if how == "lost":
        (copy / MANIFEST).unlink()
    else:
        (copy / MANIFEST).write_bytes(text[: len(text) // 2] if how == "cut" else text.replace(b'"rows"', b'"rowz"', 1))
    assert [each.what for each in lakescope.repair(copy, dry_run=True)] == ["restored"]
    with pytest.raises((IndexDamaged, BadRequest)):
        lakescope.open(copy)
    assert [each.what for each in lakescope.repair(copy)] == ["restored"]
    assert (copy / MANIFEST).read_bytes() == text
    assert answers(copy) == answers(whole)
    if how != "lost":
        assert len(list((copy / "damaged").rglob(MANIFEST))) == 1, "what was damaged is kept"


def repaired(index: Path, file: SegmentFile, right: dict[str, Any]) -> None:
    """Damage a file: repair makes the index answer, and an update makes it whole."""
    data = bytearray((index / file.path).read_bytes())
    data[len(data) // 2] ^= 0x10
    (index / file.path).write_bytes(data)
    done = lakescope.repair(index)
    assert file.path in [each.where for each in done if each.what == "set aside"]
    kept = list((index / "damaged").rglob(Path(file.path).name))
    assert [path.read_bytes() for path in kept] == [bytes(data)]
    lake = lakescope.open(index)
    assert list(lake.verify(deep=True)) == [], file.kind
    dropped = {each.where for each in done if each.what == "dropped"}
    there = set(lake.tables()["table"].to_pylist())
    assert not dropped & there
    if file.kind not in ("tables", "columns"):
        assert dropped | there >= {"t0.csv", "t1.csv", "t2.csv"}
    lake.update()
    assert list(lake.verify(deep=True)) == [], file.kind
    after = answers(index)
    for question in ("tables", "join", "lsh", "correlated", "inclusions"):
        assert after[question] == right[question], f"{file.kind}: {question}"


@pytest.mark.parametrize("kind", ["tables", "postings", "tombstones", "past"])
def test_a_damaged_file_is_repaired_and_scanned_again(whole: Path, copy: Path, kind: str) -> None:
    repaired(copy, next(file for file in files_of(copy) if file.kind == kind), answers(whole))


@pytest.mark.slow
def test_any_damaged_file_is_repaired_and_scanned_again(whole: Path, tmp_path: Path) -> None:
    right = answers(whole)
    for number, file in enumerate(files_of(whole)):
        repaired(Path(shutil.copytree(whole, tmp_path / str(number))), file, right)


def test_tables_that_are_gone_from_a_segment_that_is_taken_out_are_forgotten(tmp_path: Path) -> None:
    lake, index = tmp_path / "lake", tmp_path / "lake.idx"
    for number in range(3):
        crashes.write_table(lake / f"t{number}.csv", number)
    with crashes.without_spark():
        lakescope.index(lake, index)
    crashes.write_table(lake / "t1.csv", 11)
    crashes.write_table(lake / "t3.csv", 3)
    lakescope.open(index).update()
    crashes.write_table(lake / "t1.csv", 12)
    lakescope.open(index).update()
    second = Manifest.load(index).segments[1]
    right = answers(index)
    repaired(index, next(file for file in files_of(index) if (file.segment, file.kind) == (second, "grams")), right)


def test_what_a_dead_writer_left_is_removed(copy: Path) -> None:
    (copy / "staging" / "x").mkdir(parents=True)
    (copy / "segments" / "old").mkdir()
    (copy / "segments" / "old" / "tables-1.parquet").write_bytes(b"x")
    (copy / f"{MANIFEST}.x").write_bytes(b"half")
    done = lakescope.repair(copy)
    assert {each.where for each in done} == {"staging", "segments/old", f"{MANIFEST}.x"}
    assert crashes.leftovers(copy) == []


def test_an_index_that_is_written_is_not_repaired(copy: Path) -> None:
    with IndexWriter(copy):
        for dry_run in (True, False):
            with pytest.raises(IndexLocked, match="another process is writing"):
                lakescope.repair(copy, dry_run=dry_run)
    assert list(lakescope.repair(copy)) == []


def test_what_cannot_be_repaired(tmp_path: Path, copy: Path) -> None:
    with pytest.raises(BadRequest, match="not a Lakescope index"):
        lakescope.repair(tmp_path)
    for path in copy.rglob(MANIFEST):
        path.unlink()
    with pytest.raises(IndexDamaged, match="no manifest") as told:
        lakescope.repair(copy)
    assert "build the index again" in str(told.value)


def test_on_the_command_line(copy: Path) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, list(arguments))

    assert "agree" in run("verify", str(copy), "--deep").stdout
    (copy / MANIFEST).write_text("gone")
    done = run("repair", str(copy), "--dry-run")
    assert (done.exit_code, "restored" in done.stdout) == (0, True)
    assert json.loads(run("repair", str(copy), "--format", "json").stdout)[0]["what"] == "restored"
    assert "nothing to repair" in run("repair", str(copy)).stdout
    rewritten(copy, "sets", put("sizes", 12345))
    done = run("verify", str(copy), "--deep")
    assert done.exit_code == 1
    assert "sizes" in done.stdout


def test_a_full_disk_on_the_command_line(copy: Path) -> None:
    """A real limit of the system, on the size of files: what is wrong, where, what to do, and no traceback."""
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "from lakescope.faces.cli import main\n"
        f"sys.argv = ['lakescope', 'remove', {str(copy)!r}, 't2.csv']\n"
        "main()\n"
    )
    before = answers(copy)
    # -B: Python would write the code of a module it compiles as far as the limit goes, and take it for whole later.
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "File too large" in done.stderr
    assert "free some room" in done.stderr
    assert "Traceback" not in done.stderr
    assert answers(copy) == before
    assert crashes.leftovers(copy) == []
