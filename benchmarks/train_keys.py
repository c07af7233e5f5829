"""Learns how the evidence for foreign keys is weighed, from generated databases (``schemas.py``); prints the weights.

What is learnt is kept in ``lakescope/keys/model.py``. No database that detectors are measured on is seen here. Half of
the databases are held out first, to tell how well the weights do on others of the same kind.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import common
import lakescope
import schemas
from lakescope.array_types import F64
from lakescope.engines.keys.evidence import FEATURES, KeyCandidate
from lakescope.engines.keys.foreign import _pointless, features_of, rostin_features, softmax

#: Not learnt: generated databases lie in a folder each, and columns that refer to nothing by their type are left out.
FIXED = {"apart_named": -3.0, "apart_unnamed": -6.0, "unfit": -3.0}


def labels(candidates: Sequence[KeyCandidate], truth: dict[tuple[str, str], tuple[str, str]]) -> F64:
    return np.array(
        [truth.get((c.child.table, c.child.column)) == (c.parent.table, c.parent.column) for c in candidates], float
    )


def conditional(x: F64, y: F64, groups: npt.NDArray[np.int64]) -> F64:
    """The conditional logit with "none" as a choice, by Newton's method, with a little shrinkage."""
    w = np.zeros(x.shape[1])
    shrink = np.eye(x.shape[1])
    shrink[0, 0] = 1e-3
    for _ in range(60):
        odds = np.exp(np.clip(x @ w, -30, 30))
        p = odds / (1 + np.bincount(groups, odds))[groups]
        means = np.zeros((int(groups.max()) + 1, x.shape[1]))
        np.add.at(means, groups, x * p[:, None])
        hessian = (x * p[:, None]).T @ x - means.T @ means + shrink
        step = np.linalg.solve(hessian, x.T @ (p - y) + shrink @ w)
        w -= step
        if np.abs(step).max() < 1e-7:
            break
    return w


def logistic(x: F64, y: F64) -> F64:
    return conditional(x, y, np.arange(y.size))


def groups_of(candidates: Sequence[KeyCandidate]) -> npt.NDArray[np.int64]:
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(each.child.number, len(numbers)) for each in candidates])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--databases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = common.data_folder("schemas", keep=False)
    shutil.rmtree(folder, ignore_errors=True)
    schemas.write(folder / "lake", options.databases, options.seed)
    truth = {}
    for file in sorted((folder / "lake").glob("*.json")):
        for each in json.loads(file.read_text())["foreign_keys"]:
            child, parent = (f"{file.stem}/{each[side]}.csv" for side in ("child", "parent"))
            truth[child, each["child_columns"][0]] = parent, each["parent_columns"][0]
        file.unlink()
    lake = lakescope.index(folder / "lake", folder / "lake.idx")
    facts = lake._keys.facts
    found, _ = lake._keys.candidates("exact", verify=True, minimum=0.95)
    candidates = [each for each in found if each.child.folder == each.parent.folder and not _pointless(each)]
    x, y = np.array(features_of(facts, candidates)), labels(candidates, truth)
    odd = np.array([int(Path(each.child.folder).name[2:]) % 2 == 1 for each in candidates])
    held_out = conditional(
        x[~odd], y[~odd], groups_of([each for each, out in zip(candidates, odd, strict=True) if not out])
    )
    some = [each for each, out in zip(candidates, odd, strict=True) if out]
    chances = softmax(x[odd] @ held_out, some)
    right = float(y[odd][chances >= 0.5].sum())
    total = sum(int(Path(child).parent.name[2:]) % 2 == 1 for child, _ in truth)
    print(f"{len(candidates):,} candidates, {int(y.sum()):,} of {len(truth):,} references among them")
    print(f"held out: precision {right / max(1, (chances >= 0.5).sum()):.3f}, recall {right / max(1, total):.3f}")
    weights = dict(zip(FEATURES, conditional(x, y, groups_of(candidates)).tolist(), strict=True)) | FIXED
    print("OURS =", {name: round(value, 3) for name, value in weights.items()})
    print("ROSTIN =", [round(each, 3) for each in logistic(np.array(rostin_features(candidates)), y).tolist()])


if __name__ == "__main__":
    main()
