"""What a prompt needs of the tools: their schemas in a fixed order, examples, and token counts.

A tool table makes it once, so that no turn compacts, counts or digests a schema again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from caal_node.context.token_estimate import text_tokens, tools_tokens
from caal_node.core.tool_spec import Example, ToolSchema


@dataclass(frozen=True)
class PromptTools:
    """The tools of a conversation as its prompts show them. It is immutable.

    Without `__slots__`, since counts are made once, when they are first asked for.
    """

    schemas: tuple[ToolSchema, ...] = ()
    """Compact schemas in OpenAI's form, in the order in which every prompt shows them."""
    examples: Mapping[str, tuple[Example, ...]] = field(
        default_factory=dict[str, tuple[Example, ...]]
    )
    """Tool name -> what a person may say for it. Shown where calls are asked for in text."""

    def __bool__(self) -> bool:
        return bool(self.schemas)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in their order."""
        return tuple(schema["function"]["name"] for schema in self.schemas)

    @cached_property
    def schema_tokens(self) -> int:
        """Estimated tokens of the schemas with a chat template's words in front of them."""
        return tools_tokens(self.schemas)

    @cached_property
    def example_tokens(self) -> int:
        """Estimated tokens of all examples."""
        return sum(text_tokens(str(e)) for found in self.examples.values() for e in found)

    @cached_property
    def digest(self) -> str:
        """A digest of all that a prompt shows of the tools: the same one means the same bytes."""
        examples = {
            name: [[e.utterance, dict(e.arguments)] for e in found]
            for name, found in self.examples.items()
        }
        shown = json.dumps([self.schemas, examples], sort_keys=True, default=dict)
        return hashlib.sha256(shown.encode()).hexdigest()

    def only(self, names: Collection[str]) -> PromptTools:
        """The tools whose name is in `names`, in the same order."""
        return PromptTools(
            tuple(schema for schema in self.schemas if schema["function"]["name"] in names),
            {name: found for name, found in self.examples.items() if name in names},
        )
