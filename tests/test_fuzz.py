"""Ten seconds of hostile bytes; ``benchmarks/fuzz.py`` goes on for as long as one likes."""

from __future__ import annotations

import os

from helpers import fuzzing


def test_hostile_bytes_do_no_harm() -> None:
    tally = fuzzing.fuzz(10.0, seed=int(os.environ.get("LAKESCOPE_FUZZ_SEED", "0")))
    assert tally.defects == []
    assert tally.inputs  # how many depends on the machine


def test_the_same_seed_gives_the_same_inputs() -> None:
    known = fuzzing.seeds()
    made = [fuzzing.make_input(5, number, known) for number in range(60)]
    assert [fuzzing.make_input(5, number, known) for number in range(60)] == made
    assert len({each.content for each in made}) > 50
    assert {each.how for each in made} == {"damaged", "damaged inside", "made, damaged"}
