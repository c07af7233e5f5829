"""Cells of every kind: what they are understood as, and any that hypothesis thinks of."""

from __future__ import annotations

from hypothesis import strategies as st

from lakescope.values.canonical import NULL_MARKERS, Kind

GOLDEN = [
    ("1", Kind.INTEGER, "1"),
    (" 1\t", Kind.INTEGER, "1"),
    ("+1", Kind.INTEGER, "1"),
    ("1.0", Kind.DECIMAL, "1"),
    ("1.50", Kind.DECIMAL, "1.5"),
    (".5", Kind.DECIMAL, "0.5"),
    ("-0.0", Kind.DECIMAL, "0"),
    ("-0", Kind.INTEGER, "0"),
    ("1e3", Kind.DECIMAL, "1000"),
    ("1E-7", Kind.DECIMAL, "1e-7"),
    ("0.0000001", Kind.DECIMAL, "1e-7"),
    ("0.000001", Kind.DECIMAL, "0.000001"),
    ("1e40", Kind.DECIMAL, "1e+40"),
    ("1" + "0" * 39, Kind.INTEGER, "1" + "0" * 39),
    ("1" + "0" * 40, Kind.INTEGER, "1e+40"),
    ("123456789012345678901234567890", Kind.INTEGER, "123456789012345678901234567890"),
    ("inf", Kind.DECIMAL, "inf"),
    ("-Infinity", Kind.DECIMAL, "-inf"),
    ("01", Kind.CODE, "01"),
    ("00501", Kind.CODE, "00501"),
    ("-01.5", Kind.CODE, "-01.5"),
    ("1.", Kind.TEXT, "1."),
    ("1,234", Kind.TEXT, "1,234"),
    ("1_000", Kind.TEXT, "1_000"),
    ("TRUE", Kind.BOOLEAN, "true"),
    ("False", Kind.BOOLEAN, "false"),
    ("yes", Kind.TEXT, "yes"),
    ("2021-03-04", Kind.DATE, "2021-03-04"),
    ("2021-02-29", Kind.TEXT, "2021-02-29"),
    ("2020-02-29", Kind.DATE, "2020-02-29"),
    ("2021-03-04 00:00:00", Kind.TIMESTAMP, "2021-03-04"),
    ("2021-03-04T05:06", Kind.TIMESTAMP, "2021-03-04T05:06:00"),
    ("2021-03-04 05:06:07.500", Kind.TIMESTAMP, "2021-03-04T05:06:07.5"),
    ("2021-03-04T00:00:00Z", Kind.TIMESTAMP, "2021-03-04T00:00:00Z"),
    ("2021-03-04T01:00:00+02:00", Kind.TIMESTAMP, "2021-03-03T23:00:00Z"),
    ("3/4/2021", Kind.DATE, "3/4/2021"),
    ("13/13/2021", Kind.TEXT, "13/13/2021"),
    ("4-Mar-21", Kind.DATE, "4-Mar-21"),
    ("March 4, 2021", Kind.DATE, "March 4, 2021"),
    ("3/4/21 5:06 PM", Kind.TIMESTAMP, "3/4/21 5:06 PM"),
    ("05:06:07.50", Kind.TIME, "05:06:07.5"),
    ("5:06", Kind.TIME, "5:06"),
    ("05:06", Kind.TIME, "05:06:00"),
    ("5:06 PM", Kind.TIME, "5:06 PM"),
    ("24:00", Kind.TEXT, "24:00"),
    ("1.2.3", Kind.TEXT, "1.2.3"),
    ("e\u0301", Kind.TEXT, "\u00e9"),
    ("\u3000x\u00a0", Kind.TEXT, "x"),
    ("na", Kind.TEXT, "na"),
    ("none", Kind.TEXT, "none"),
    ("?", Kind.TEXT, "?"),
]

numbers = st.from_regex(r"[+-]?(0|[1-9][0-9]{0,45})?(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)

moments = st.from_regex(
    r"([0-9]{4}-[01][0-9]-[0-3][0-9]"
    r"([T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?(Z|[+-][01][0-9]:?[0-9]0)?)?"
    r"|[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{2,4}( [0-9]{1,2}:[0-9]{2}( ?[AP]M)?)?"
    r"|[0-9]{4}[/.-][0-9]{1,2}[/.-][0-9]{1,2}|[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,10})?)?( ?[ap]m)?"
    r"|[0-9]{1,2}[ -](Jan|march|SEPT|Mayo|dec)[ -]([0-9]{2}|[0-9]{4})|(Feb|June|Octo)\.? [0-9]{1,2},? [0-9]{4})",
    fullmatch=True,
)

texts = st.text(max_size=60)

cells = st.one_of(
    texts,
    numbers,
    moments,
    st.sampled_from([*sorted(NULL_MARKERS), "true", "FALSE", "inf", "-Inf", "Infinity"]),
    st.tuples(st.sampled_from([" ", "\u00a0", "\u2003", "\x1c", "\n"]), numbers).map("".join),
).map(lambda text: text.encode("utf-8", "replace"))

raw_cells = st.one_of(cells, st.binary(max_size=12), st.none())
