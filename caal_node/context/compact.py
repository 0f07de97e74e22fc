"""Less to read: values and tool schemas as the fewest characters that say the same."""

from caal_node.context.one_line_json import to_line
from caal_node.context.schemas import compact_schema

__all__ = ["compact_schema", "to_line"]
