"""Cut files of an index off under a reader, and put them back; prints what the reader said as JSON.

Run as a program: a reader that does not survive it ends its process with a signal, and not that of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lakescope
from lakescope.errors import IndexDamaged
from lakescope.lake import Lake
from lakescope.store import faults, mapped
from lakescope.store.manifest import Manifest, SegmentFile

PAGE = 4096
QUESTIONS: dict[str, Callable[[Lake], Any]] = {
    "tables": lambda lake: lake.tables().to_pylist(),
    "columns": lambda lake: lake.columns().to_pylist(),
    "problems": lambda lake: lake.problems().to_pylist(),
    "profile": lambda lake: lake.profile("t2.csv").to_dict(),
    "join": lambda lake: lake.joinable("t2.csv", on="key").to_dicts(),
    "signatures": lambda lake: lake.joinable("t2.csv", on="key", threshold=0.2, engine="lsh").to_dicts(),
    "correlated": lambda lake: lake.correlated("t2.csv", key="key", target="number").to_dicts(),
    "inclusions": lambda lake: lake.inclusions(minimum=0.3).to_dicts(),
    "history": lambda lake: lake.history("t1.csv").to_dicts(),
    "rewritten": lambda lake: len(lake.autojoin("t2.csv", candidates=1, budget=0.01)) < 2,
}


def said(lake: Lake, name: str) -> Any:
    """An answer, or the error that says which file is damaged."""
    try:
        return rounded(QUESTIONS[name](lake))
    except IndexDamaged as error:
        return f"DAMAGED {error.message}"


def rounded(answer: Any) -> Any:
    """Numbers to nine digits: whether kernels are compiled already may change the last ones."""
    if isinstance(answer, float):
        return f"{answer:.9g}"
    if isinstance(answer, dict):
        return {name: rounded(value) for name, value in answer.items()}
    return [rounded(value) for value in answer] if isinstance(answer, list | tuple) else answer


def cuts(size: int) -> list[int]:
    """Lengths that a file is cut to: nothing, half, without its last page, without its last byte."""
    return sorted({0, size // 2, max(0, size - PAGE), size - 1})


def meanwhile(cut: Callable[[], None]) -> None:
    """Have a file cut off when the next question has just begun, and before it reads anything."""
    begin = faults.FaultCounter.begin

    def begun(owner: faults.FaultCounter) -> None:
        begin(owner)
        faults.FaultCounter.begin = begin  # type: ignore[method-assign]
        cut()

    faults.FaultCounter.begin = begun  # type: ignore[method-assign]


class Reader:
    """A lake that is asked while files of its index are cut off."""

    def __init__(self, index: Path, moment: str, right: dict[str, Any]) -> None:
        self.index, self.moment, self.right = index, moment, right
        self.lake = lakescope.open(index)

    def try_file(self, file: SegmentFile) -> dict[str, Any]:
        """Cut a file off at several lengths; how often that was told, and whatever was said wrongly."""
        path = self.index / file.path
        content = path.read_bytes()
        damaged, wrong = 0, []
        # The one that takes longest is for the only file that no other one reads.
        names = [name for name in QUESTIONS if name != "rewritten" or file.kind == "grams"]
        for length in cuts(len(content)):
            if self.moment == "first":
                self.lake = lakescope.open(self.index)
            for name in names:
                if self.moment == "middle":
                    meanwhile(partial(os.truncate, path, length))
                else:
                    os.truncate(path, length)
                found = said(self.lake, name)
                if isinstance(found, str) and found.startswith("DAMAGED") and file.path in found:
                    damaged += 1
                elif found != self.right[name]:
                    wrong.append([name, length, found])
                if self.moment == "middle" or name == names[-1]:
                    path.write_bytes(content)
            whole = {name: said(self.lake, name) for name in names} if length == 0 else self.right
            wrong += [[name, "put back", found] for name, found in whole.items() if found != self.right[name]]
        return {"damaged": damaged, "wrong": wrong}


def served(index: Path) -> dict[str, Any]:
    """What a server says whose files are cut off: its main process with two that search, and its workers."""
    from fastapi.testclient import TestClient

    from lakescope.faces.serving.app import create_app

    # The others map every file, too: this is imported wherever Python starts.
    (index.parent / "site").mkdir()
    (index.parent / "site" / "sitecustomize.py").write_text("from lakescope.store import mapped\nmapped.SMALL = 0\n")
    sys.path.insert(0, str(index.parent / "site"))
    lake = lakescope.open(index, processes=2)
    lake.warm()
    with TestClient(create_app(lake), "http://127.0.0.1") as client:
        table, content = "table:t2.csv", (index.parent / "lake/t2.csv").read_bytes()
        ways = {
            "joinable": {"query": table, "on": "key"},
            "correlated": {"query": table, "key": "key", "target": "number"},
            "file": {"on": "key", "wait": 60},
        }

        def ask(name: str) -> Any:
            path, asked = name, dict(ways[name])
            if name == "file":  # sent anew: an answer about a file that was asked about is kept
                path = "joinable"
                sent = client.post("/api/v1/uploads", files={"file": ("t.csv", content)}).json()
                asked["query"] = sent["data"]["query"] if "data" in sent else ""
            body = client.get(f"/api/v1/{path}", params=asked).json()
            return f"DAMAGED {body['error']['message']}" if "error" in body else rounded(body["data"]["records"])

        right = {name: ask(name) for name in ways}
        files = {file.kind: file for file in Manifest.load(index).files}
        found: dict[str, Any] = {}
        for kind in ("postings", "sets", "tokens", "pairs"):
            path = index / files[kind].path
            whole = path.read_bytes()
            os.truncate(path, 0)
            cut = {name: ask(name) for name in ways}
            path.write_bytes(whole)
            back = {name: ask(name) for name in ways}
            wrong = [[name, of] for name, of in cut.items() if of != right[name] and files[kind].path not in of]
            wrong += [[name, "put back", of] for name, of in back.items() if of != right[name]]
            found[kind] = {"damaged": sorted(name for name in ways if cut[name] != right[name]), "wrong": wrong}
    return found


def compacted(index: Path) -> dict[str, Any]:
    """What becomes of an index whose files are cut off while it is compacted."""
    found: dict[str, Any] = {}
    for kind in ("columns", "tokens", "sketches", "keys", "pairs"):
        copy = Path(shutil.copytree(index, index.with_name(f"compacted-{kind}.idx")))
        file = next(each for each in Manifest.load(copy).files if each.kind == kind)
        path = copy / file.path
        whole = path.read_bytes()
        meanwhile(partial(os.truncate, path, 0))
        try:
            lakescope.open(copy).compact()
            found[kind] = "compacted"
        except IndexDamaged as error:
            found[kind] = file.path in error.message and len(Manifest.load(copy).segments)
        path.write_bytes(whole)
        lakescope.open(copy).compact()
        assert not lakescope.open(copy).verify(deep=True)
    return found


def main(index: Path, moment: str, small: int) -> None:
    mapped.SMALL = small
    if moment == "compacted":
        print(json.dumps(compacted(index)))
        return
    if moment == "served":
        print(json.dumps(served(index)))
        return
    lake = lakescope.open(index)
    lake.warm()
    right = {name: said(lake, name) for name in QUESTIONS}
    copy = Path(shutil.copytree(index, index.with_name(f"{moment}-{small}.idx")))
    reader = Reader(copy, moment, right)
    for name in QUESTIONS if moment != "first" else ():
        said(reader.lake, name)
    files = {file.kind: file for file in Manifest.load(copy).files}
    print(json.dumps({kind: reader.try_file(file) for kind, file in files.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
