"""How evidence is weighed: what ``benchmarks/train_keys.py`` learnt from 400 generated databases."""

from __future__ import annotations

import numpy as np

from lakescope.engines.keys.evidence import FEATURES

_WEIGHTS = {
    "bias": -0.844,
    "strong": -2.361,
    "name": 3.341,
    "name_lead": 1.093,
    "generic": 0.43,
    "child_primary": 0.213,
    "coverage": -1.139,
    "reach_named": 1.871,
    "reach_unnamed": 4.4,
    "surprise_named": -0.082,
    "surprise_unnamed": 3.056,
    "values": -0.987,
    "unfit": -3.0,
    "measure": -4.788,
    "child_marked": 0.398,
    "primary": 2.962,
    "parent_marked": 0.374,
    "ratio": 0.962,
    "missing": -4.333,
    "parents_named": -0.351,
    "parents_unnamed": -2.435,
    "same_set_named": 0.341,
    "same_set_unnamed": -1.588,
    "same_table": 0.552,
    "apart_named": -3.0,
    "apart_unnamed": -6.0,
    "few_unnamed": -0.791,
    "text": 1.051,
    "unique_named": -0.256,
    "unique_unnamed": -1.69,
    "unlike_named": -1.376,
    "unlike_marked": 0.853,
    "constant_unnamed": 1.016,
    "derived": -0.529,
    "unmarked_unnamed": -1.292,
    "date": -1.489,
    "own": -2.057,
    "years": -2.131,
}

#: Weights of the features, in their order.
OURS = np.array([_WEIGHTS[name] for name in FEATURES])
#: Weights of Rostin's features, a constant first.
ROSTIN = np.array([2.238, -1.308, -1.868, -1.746, -2.533, -1.576, 2.696, -7.65, -3.116, 1.197, 0.688])
