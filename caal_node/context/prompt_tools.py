"""The tools as prompts show them: schemas in a fixed order, examples, and token counts.

A tool table makes them once, so that no turn compacts, counts or digests a schema again.
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

    It has no `__slots__`, since `cached_property` keeps each count once it has been made.
    """

    schemas: tuple[ToolSchema, ...] = ()
    """Compact schemas in OpenAI's form, in the order in which every prompt shows them."""
    examples: Mapping[str, tuple[Example, ...]] = field(
        default_factory=dict[str, tuple[Example, ...]]
    )
    """What a person may say for each tool name. Prompts show it where calls are written in text."""

    def __bool__(self) -> bool:
        return bool(self.schemas)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in their order."""
        return tuple(schema["function"]["name"] for schema in self.schemas)

    @cached_property
    def schema_tokens(self) -> int:
        """Estimated tokens of the schemas, and of the chat template's words in front of them."""
        return tools_tokens(self.schemas)

    @cached_property
    def example_tokens(self) -> int:
        """Estimated tokens of all examples."""
        return sum(text_tokens(str(e)) for found in self.examples.values() for e in found)

    @cached_property
    def digest(self) -> str:
        """A digest of all that prompts show of the tools. Equal digests mean equal bytes."""
        examples = {
            name: [[e.utterance, dict(e.arguments)] for e in found]
            for name, found in self.examples.items()
        }
        text = json.dumps([self.schemas, examples], sort_keys=True, default=dict)
        return hashlib.sha256(text.encode()).hexdigest()

    def only(self, names: Collection[str]) -> PromptTools:
        """Return the tools whose name is in `names`, in the same order."""
        return PromptTools(
            tuple(schema for schema in self.schemas if schema["function"]["name"] in names),
            {name: found for name, found in self.examples.items() if name in names},
        )
