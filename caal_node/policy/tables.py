"""The form of the table `[tools]` of `caal.toml`, for the schema that editors read.

`reader.py` and `limit_rules.py` read the table itself: they go on behind a fault, and name the line
of each.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import ConfigDict, Field

from caal_node.core.caller import CallOrigin
from caal_node.core.events import TierName
from caal_node.core.given_table import GivenTable
from caal_node.core.tool_spec import Effect
from caal_node.policy.limit_rules import GLOB_CHARS_MAX, GLOBS_MAX, MOST, RULES_MAX, Part
from caal_node.policy.policy import Mode, Outside

_Word = TypeVar("_Word")
_OneOrMore: TypeAlias = _Word | Annotated[list[_Word], Field(min_length=1, max_length=GLOBS_MAX)]
_Glob: TypeAlias = Annotated[str, Field(min_length=1, max_length=GLOB_CHARS_MAX)]
_Globs: TypeAlias = _OneOrMore[_Glob]
_Calls: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]


class RuleTable(GivenTable):
    """A rule. It fits a call if all of its conditions do, and the first rule that fits decides."""

    tools: _Globs | None = None
    """Names of tools as `caal-node tools` lists them, or globs such as `unlock_*`."""
    tier: _OneOrMore[TierName] | None = None
    server: _Globs | None = None
    """The MCP server's name, `n8n`, or the agent's class."""
    effect: _OneOrMore[Effect] | None = None
    """What the tool does at worst."""
    annotation: _Globs | None = None
    """What the tool's source claims, such as `destructiveHint`; n8n's are tags."""
    rooms: _Globs | None = None
    """Names of rooms."""
    participants: _Globs | None = None
    """Identities of participants."""
    origin: _OneOrMore[CallOrigin] | None = None
    """Where the call comes from."""
    attributes: dict[str, _Glob] | None = None
    """Attributes that the participant must have, with a glob for the value of each."""
    then: Literal["allow", "deny", "confirm", "pin", "dry-run"]
    """What becomes of the call. pin: it needs a yes and the PIN of CAAL_PIN."""


class LimitTable(GivenTable):
    """How often the calls may run that the rule covers: per turn, minute or hour."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [key]} for key in ("per_turn", "per_minute", "per_hour")]
        }
    )

    tools: _Globs | None = None
    """Names of tools, or globs such as `send_*`."""
    rooms: _Globs | None = None
    """Names of rooms."""
    participants: _Globs | None = None
    """Identities of participants."""
    effect: _OneOrMore[Effect] | None = None
    """What the tool does at worst."""
    per_turn: _Calls | None = None
    per_minute: _Calls | None = None
    per_hour: _Calls | None = None
    each: _OneOrMore[Part] | None = None
    """What is counted apart. Without it, all calls that the rule covers have one count."""


class ToolsTable(GivenTable):
    """What may be called, and by whom; see docs/safety.md."""

    mode: Mode = "house"
    """What happens where no rule fits. house: destructive calls need a yes. open: all run.
    read-only: only tools that read run."""
    dry_run: bool = False
    """Whether no tool runs, and people only hear what would have been done."""
    outside: Outside = "remote"
    """Whose calls need a yes if only a tool's text asked for them: n8n's and MCP servers', all or
    none."""
    second_look_model: Annotated[str, Field(max_length=GLOB_CHARS_MAX)] = ""
    """Another model that judges calls that change something, `[api:]model[@url]`; empty: none."""
    effects: dict[_Glob, Effect] | None = None
    """What tools do at worst, by name or glob. The first that fits decides."""
    rules: Annotated[list[RuleTable], Field(max_length=200)] | None = None
    limits: Annotated[list[LimitTable], Field(max_length=RULES_MAX)] | None = None
