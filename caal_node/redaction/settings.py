"""What is taken out of texts that leave the conversation: the table `[redaction]` of caal.toml.

[redaction]
personal = ["email", "phone"]
patterns = {customer = 'KD-\\d{6}'}
paths = true
local_models = true
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from caal_node.redaction.owner_patterns import owner_pattern

PersonalKind: TypeAlias = Literal["email", "phone", "iban", "card"]
"""Kinds of personal data that are known: addresses for mail, telephone numbers, international
numbers of bank accounts, numbers of payment cards."""
MAX_PATTERNS: Final = 32
"""Each costs a search of every text: some 2 us in 6,000 characters that do not hold it."""
MAX_NAME_CHARS: Final = 24
"""Characters of a pattern's name, which stands in the text in place of what it found."""
_NAME: Final = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_NAME_CHARS - 1}}}")
_ENDINGS: Final = {"secret", "path", "email", "phone", "iban", "card"}


def _pattern(text: str) -> str:
    owner_pattern(text)
    return text


def _named(patterns: Mapping[str, str]) -> Mapping[str, str]:
    for name in patterns:
        if not _NAME.fullmatch(name) or name in _ENDINGS:
            raise ValueError(
                f"{name!r} cannot name a pattern; write up to {MAX_NAME_CHARS} small letters and "
                f"digits, and none of {', '.join(sorted(_ENDINGS))}"
            )
    return patterns


class RedactionSettings(BaseModel):
    """What is redacted, beside the secrets that this process knows by their value.

    Those, and what looks like a secret, are taken out of what cloud models read and of events,
    logs, traces and transcripts in any case.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    personal: tuple[PersonalKind, ...] = ()
    """Kinds that are found without a pattern of the owner's."""
    patterns: Annotated[
        Mapping[str, Annotated[str, AfterValidator(_pattern)]],
        AfterValidator(_named),
        Field(max_length=MAX_PATTERNS),
    ] = {}
    """Regular expressions of further personal data by name, such as `customer`."""
    paths: bool = False
    """Whether folders of files are left out: `~/notes.txt` and `notes.txt` stay of whole paths."""
    local_models: bool = False
    """Whether models on this machine and in its own network read redacted texts, too."""
    secret_shapes: bool = True
    """Whether results of tools lose what looks like a key, whichever model reads them. A tool that
    hands out keys for other tools needs it off."""


def _table(value: Any) -> Any:
    """Read the table from the environment, where it is JSON."""
    if not isinstance(value, str):
        return value
    try:
        table: object = json.loads(value)
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise ValueError('write a JSON object such as {"personal": ["email"]}')
    return cast("dict[str, Any]", table)


Redactions: TypeAlias = Annotated[RedactionSettings, BeforeValidator(_table)]
