"""A schema drawn three ways: an SVG picture, Mermaid's text, and SQL."""

from lakescope.show.diagram.declarations import sql as sql
from lakescope.show.diagram.erdiagram import mermaid as mermaid
from lakescope.show.diagram.picture import svg as svg
from lakescope.show.diagram.schema import Box as Box
from lakescope.show.diagram.schema import Column as Column
from lakescope.show.diagram.schema import Edge as Edge
