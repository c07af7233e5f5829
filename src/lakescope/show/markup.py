"""HTML by construction: text is escaped unless it is HTML already, so that nothing can be forgotten."""

from __future__ import annotations

from html import escape

from lakescope.show.text import printable

_VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta"))


class Html(str):
    """Text that is HTML already, for templates too."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def text(value: object) -> Html:
    """A value as HTML text: escaped, on one line, without characters that move or hide others."""
    return Html(escape(printable(str(value)), quote=True))


def el(name: str, /, *children: object, **attributes: object) -> Html:
    """An element: children that are not HTML become text; None and False are left out, True is a bare attribute.

    ``class_`` is ``class``; other underscores in names of attributes are hyphens.
    """
    parts = ["<", name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        parts.append(" " + key.rstrip("_").replace("_", "-"))
        if value is not True:
            parts.append(f'="{text(value)}"')
    parts.append(">")
    if name in _VOID:
        return Html("".join(parts))
    parts.extend(child if isinstance(child, Html) else text(child) for child in children if child is not None)
    parts.append(f"</{name}>")
    return Html("".join(parts))


def joined(*parts: object) -> Html:
    """Parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts if part is not None))
