"""How evidence is weighed: what ``benchmarks/train_keys.py`` learnt from 400 generated databases."""

from __future__ import annotations

import numpy as np

from lakescope.keys.evidence import FEATURES

_WEIGHTS = {
    "bias": -1.115,
    "strong": -1.77,
    "name": 3.452,
    "name_lead": 0.536,
    "generic": -0.139,
    "child_primary": -0.429,
    "coverage": -1.082,
    "reach_named": 2.159,
    "reach_unnamed": 4.658,
    "surprise_named": 0.305,
    "surprise_unnamed": 3.49,
    "values": -1.241,
    "unfit": -3.0,
    "measure": -4.475,
    "child_marked": 0.414,
    "primary": 3.366,
    "parent_marked": 0.389,
    "ratio": 1.131,
    "missing": -4.129,
    "parents_named": 0.333,
    "parents_unnamed": -1.868,
    "same_set_named": 0.468,
    "same_set_unnamed": -1.04,
    "same_table": 0.682,
    "apart": -3.0,
    "few_unnamed": -0.469,
    "text": 0.831,
    "unique_named": -0.173,
    "unique_unnamed": -1.806,
    "unlike_named": -1.3,
    "unlike_marked": 0.064,
    "constant_unnamed": 0.641,
    "derived": 0.245,
    "unmarked_unnamed": -1.089,
    "date": -0.928,
    "own": -3.913,
}

#: Weights of the features, in their order.
OURS = np.array([_WEIGHTS[name] for name in FEATURES])
#: Weights of Rostin's features, a constant first.
ROSTIN = np.array([2.259, -1.677, -1.606, -1.665, -2.483, -1.517, 2.965, -7.613, -3.579, 1.032, 0.71])
