"""Points, spans and lengths of time in people's words: "friday afternoon", "in ten minutes".

`read_when` reads a point or a span, `read_length` a length. Both are pure: the present is given.
"""

from caal_node.toolsets.when.lengths import Length, at_wall_clock, later, read_length
from caal_node.toolsets.when.reading import When, asked_length, asked_when, read_when

__all__ = [
    "Length",
    "When",
    "asked_length",
    "asked_when",
    "at_wall_clock",
    "later",
    "read_length",
    "read_when",
]
