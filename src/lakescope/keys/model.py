"""How evidence is weighed: what ``benchmarks/train_keys.py`` learnt from 400 generated databases."""

from __future__ import annotations

import numpy as np

from lakescope.keys.evidence import FEATURES

_WEIGHTS = {
    "bias": -0.547,
    "strong": -2.581,
    "name": 2.994,
    "name_lead": 1.262,
    "generic": -0.364,
    "child_primary": -0.691,
    "coverage": -0.957,
    "reach_named": 1.864,
    "reach_unnamed": 4.333,
    "surprise_named": -0.114,
    "surprise_unnamed": 2.984,
    "values": -0.905,
    "unfit": -3.0,
    "measure": -4.878,
    "child_marked": 0.487,
    "primary": 2.951,
    "parent_marked": 0.347,
    "ratio": 0.901,
    "missing": -4.177,
    "parents_named": -0.346,
    "parents_unnamed": -2.483,
    "same_set_named": 0.517,
    "same_set_unnamed": -1.728,
    "same_table": 0.515,
    "apart": -3.0,
    "few_unnamed": -0.718,
    "text": 0.928,
    "unique_named": 0.612,
    "unique_unnamed": -1.626,
    "unlike_named": -1.614,
    "unlike_marked": 0.246,
    "constant_unnamed": 1.045,
    "derived": -0.245,
    "unmarked_unnamed": -0.882,
    "date": -1.644,
    "own": -4.618,
    "years": -2.136,
}

#: Weights of the features, in their order.
OURS = np.array([_WEIGHTS[name] for name in FEATURES])
#: Weights of Rostin's features, a constant first.
ROSTIN = np.array([2.17, -1.262, -1.807, -1.756, -2.54, -1.566, 2.69, -7.665, -3.051, 1.201, 0.67])
