"""A schema as Mermaid's text, which GitHub and many editors draw; names are hostile until escaped."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from lakescope.show.diagram.cards import table_cards
from lakescope.show.diagram.schema import Box, Edge, edges_between, type_word
from lakescope.show.text import percent, printable


def mermaid(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    """The schema as a Mermaid ``erDiagram``, which GitHub and many editors draw."""
    edges = edges_between(boxes, edges)
    names = dict(zip((box.table for box in boxes), _unique(_entity(box.table) for box in boxes), strict=True))
    lines = ["erDiagram"]
    for card in table_cards(boxes, edges):
        lines.append(f'    "{names[card.box.table]}" {{')
        attributes = _unique(_attribute(column.name) for column in card.rows)
        for column, name in zip(card.rows, attributes, strict=True):
            keys = ", ".join(word for word, holds in (("PK", column.key), ("FK", column.foreign)) if holds)
            comment = f'"{_quotable(column.name)}"' if name != column.name else ""
            lines.append(" ".join(filter(None, ["       ", type_word(column), name, keys, comment])))
        if card.more:
            lines.append(f'        _ _ "+ {len(card.more)} more"')
        lines.append("    }")
    for edge in edges:
        share = f" ({percent(edge.inclusion)})" if edge.inclusion < 1 else ""
        label = _quotable(", ".join(edge.child_columns)) + share
        line = "||--o{" if edge.verified else "||..o{"
        lines.append(f'    "{names[edge.parent_table]}" {line} "{names[edge.child_table]}" : "{label}"')
    return "\n".join(lines) + "\n"


#: Characters that end a string of Mermaid's, or start a directive, an entity or a tag in one, and their look-alikes.
_LOOKALIKES = str.maketrans('"%\\~#;<>`', "'\uff05\uff3c\u223c\uff03\uff1b\u2039\u203a'")
#: Mermaid takes a line with such words for a command, in quotes or not.
_COMMAND = re.compile(r"(direction)\s+(?=TB|BT|RL|LR)", re.IGNORECASE)
_NOT_ATTRIBUTE = re.compile(r"[^A-Za-z0-9_\u00c0-\uffff]|[^\w]")
#: What cannot start an attribute's name: a digit, or the word for a key.
_NOT_START = re.compile(r"[0-9]|$|(?:pk|fk|uk)(?![A-Za-z0-9_])", re.IGNORECASE)


def _quotable(name: str) -> str:
    """A name for between quotes."""
    return _COMMAND.sub(r"\1_", printable(name).translate(_LOOKALIKES)).strip()


def _entity(name: str) -> str:
    return _quotable(name) or "_"


def _attribute(name: str) -> str:
    word = _NOT_ATTRIBUTE.sub("_", name)
    return "_" + word if _NOT_START.match(word) else word


def _unique(names: Iterable[str]) -> list[str]:
    """Names made different by a number where they are not."""
    taken: set[str] = set()
    counts: dict[str, int] = defaultdict(int)
    found = []
    for name in names:
        unique = name
        while unique in taken:
            counts[name] += 1
            unique = f"{name}_{counts[name] + 1}"
        taken.add(unique)
        found.append(unique)
    return found
