"""Estimates the tokens of a text without a tokenizer. Equal texts get equal estimates.

The estimate errs high, because too low is the worse mistake: past its limit Ollama drops the
oldest messages and reports nothing.

The weights come from texts counted with the vocabulary of Qwen2.5 (151,936 entries). The estimate
divided by Qwen2.5's count is 1.35 on English prose, 1.19 on German and French, 1.2 to 1.4 on JSON
records and tool listings, 1.09 on numbers, and 1.6 to 2.3 on Korean, Japanese, Chinese and Arabic.
It is too low where hardly any token is a word: 0.94 on UUIDs, 0.87 on Polish, 0.85 on base64, 0.5
on random letters. Digits weigh most because many model families split numbers into single digits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

from caal_node.context.schemas import told_catalogue
from caal_node.core.items import CallItem, ResultItem, ToolsItem, WindowItem
from caal_node.core.tool_spec import Example, ToolSchema

# The tools as prompts show them: schemas in a fixed order, examples, and token counts.
#
# A tool table makes them once, so that no turn compacts, counts or digests a schema again.


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


# Hundredths of a token for each byte of a kind. They are integers, so that no rounding differs.
_LOWER_OR_SPACE: Final = 29
_UPPER: Final = 75
_DIGIT: Final = 115
_NOT_ASCII: Final = 50
_OTHER: Final = 60

_LOWER_BYTES: Final = bytes(range(ord("a"), ord("z") + 1)) + b" "
_UPPER_BYTES: Final = bytes(range(ord("A"), ord("Z") + 1))
_DIGIT_BYTES: Final = b"0123456789"
_HIGH_BYTES: Final = bytes(range(0x80, 0x100))

# Tokens that a chat template puts around an item. Qwen2.5's has 5 for a message, 16 for a call, 14
# for a result and 78 in front of the tools; these are higher, as other templates are longer.
MESSAGE_TOKENS: Final = 6
CALL_TOKENS: Final = 17
RESULT_TOKENS: Final = 15
TOOLS_TOKENS: Final = 90
ITEMS_KEPT: Final = 256
"""Items whose count is kept, so that a request costs what its newest turn does."""
TOLD_TOKENS: Final = 24
"""The words around told tools, see `prompts/told_tools.md`."""


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text, in linear time: about 5 ms for a mebibyte."""
    data = text.encode("utf-8", "surrogatepass")
    rest = data.translate(None, _LOWER_BYTES)
    hundredths = (len(data) - len(rest)) * _LOWER_OR_SPACE
    for kind, weight in ((_UPPER_BYTES, _UPPER), (_DIGIT_BYTES, _DIGIT), (_HIGH_BYTES, _NOT_ASCII)):
        left = rest.translate(None, kind)
        hundredths += (len(rest) - len(left)) * weight
        rest = left
    hundredths += len(rest) * _OTHER
    return -(-hundredths // 100)


@lru_cache(ITEMS_KEPT)
def item_tokens(item: WindowItem) -> int:
    """Estimate the tokens of one item, with those that a chat template puts around it."""
    if isinstance(item, CallItem):
        return CALL_TOKENS + text_tokens(item.name) + text_tokens(item.arguments)
    if isinstance(item, ResultItem):
        return RESULT_TOKENS + text_tokens(item.output)
    if isinstance(item, ToolsItem):
        shown = sum(text_tokens(str(example)) for example in item.examples.values())
        return MESSAGE_TOKENS + TOLD_TOKENS + text_tokens(told_catalogue(item)) + shown
    return MESSAGE_TOKENS + text_tokens(item.text)


def items_tokens(items: Iterable[WindowItem]) -> int:
    """Estimate the tokens of several items."""
    return sum(map(item_tokens, items))


def tools_tokens(tools: Iterable[Mapping[str, Any]]) -> int:
    """Estimate the tokens of tool schemas in OpenAI's form, with the template's words before them.

    Spaces count too, as several templates render schemas with them.
    """
    sizes = [text_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools]
    return TOOLS_TOKENS + sum(sizes) if sizes else 0
