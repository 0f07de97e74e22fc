"""An agent answers here when it is asked for its tools, or to call one of them."""

# pyright: reportUnknownParameterType=false, reportMissingTypeArgument=false
# LiveKit leaves the event types of its models open.

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Final, Protocol, cast, get_args

from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.control.messages import (
    CallAnswer,
    CallFailure,
    CallTool,
    FailureKind,
    FindAnswer,
    FindTools,
    ListAnswer,
    ListTools,
    ModelReport,
    ModelRequest,
    ToolsAnswer,
    ToolsRequest,
    ToolSummary,
)
from caal_node.core.addresses import CLOUD, ModelReference
from caal_node.core.caller import Caller
from caal_node.core.errors import (
    ConfigError,
    ConfirmationNeeded,
    NotAllowed,
    ToolFailure,
    UnknownTool,
)
from caal_node.models.backends.cloud import load_plugin
from caal_node.models.llm import LLM
from caal_node.models.model_settings import api_of
from caal_node.tools.direct_calls import DirectCalls
from caal_node.tools.middleware.policy_check import PolicyChecks
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.table import ToolEntry

# Another model for a conversation: what a caller of the control API may choose, and what is its
# owner's alone.

_UNLISTED: Final = (
    "base_url: no setting of the agent names this address; its owner lists those that may be "
    "named as CAAL_MODEL_SERVERS, or model_servers in caal.toml."
)
_NAMES_CODE: Final = (
    "This agent's model is a plugin's, whose name is code to be run, or a file of this machine; "
    "send an api: ollama, openai, completions, anthropic or google."
)


async def change_model(settings: Settings, request: ModelRequest, model: llm.LLM) -> ModelReport:
    """Have `model` ask another one from the next reply on, as `request` wants.

    Raises:
        NotAllowed: the request names what the settings do not list; the old model stays.
        ModelError, ConfigError: the model cannot be used, and the old one stays.
    """
    if not isinstance(model, LLM):
        raise ConfigError("only a caal_node.LLM can be changed; this agent has another kind")
    chosen = chosen_model(settings, request, in_use=model.provider)
    key = chosen.api_key.get_secret_value() if chosen.api_key else None
    if chosen.api in CLOUD:
        await load_plugin(chosen.api)
    await model.switch(chosen.model, chosen.api, chosen.model_address, key)
    return ModelReport(model=model.model, api=model.provider)


def chosen_model(settings: Settings, request: ModelRequest, *, in_use: str) -> Settings:
    """Return the settings of the model that is asked for. `in_use` is the wire format by now.

    The address is one of the owner's, as the owner wrote it; theirs is the key, which goes to its
    own server alone.

    Raises:
        NotAllowed: the request names an address that is not listed, or code.
        ConfigError: the wire format is none.
    """
    no_name = in_use in ("livekit", "embedded")
    api = api_of(request.api or (None if no_name else in_use))
    if api is None:
        raise NotAllowed(_NAMES_CODE)
    address = None
    if request.base_url is not None:
        try:
            address = settings.listed_server(request.base_url)
        except ValueError as error:
            raise NotAllowed(f"base_url: {error}.") from None
        if address is None:
            raise NotAllowed(_UNLISTED)
    return settings.with_model(ModelReference(request.model, api, address))


_FAILURE_KINDS: Final[frozenset[str]] = frozenset(get_args(FailureKind))


class Prompts(Protocol):
    """What is needed of the builder of prompts."""

    @property
    def left_out(self) -> frozenset[str]: ...


class AgentTools:
    """The handler that a `ControlListener` takes as `on_tools`."""

    def __init__(
        self,
        remote: RemoteToolset,
        calls: DirectCalls,
        policies: PolicyChecks,
        prompts: Prompts,
    ) -> None:
        """`prompts` knows for which tools the model's context has no room."""
        self._prompts: Final = prompts
        self._policies: Final = policies
        self._remote: Final = remote
        self._calls: Final = calls

    async def __call__(self, request: ToolsRequest) -> ToolsAnswer:
        """Answer one request of the Tools API."""
        match request:
            case ListTools():
                whole = await self._remote.whole_table()
                failed = dict(self._remote.failed)
                return ListAnswer(tools=await self._summaries(whole), failed=failed)
            case FindTools(patterns=patterns, limit=limit):
                found = await self._remote.find(patterns)
                return FindAnswer(found=len(found), tools=await self._summaries(found[:limit]))
            case CallTool():
                return await self._call(request)

    async def _call(self, call: CallTool) -> CallAnswer | CallFailure:
        try:
            result = await self._calls.run(call.name, call.arguments, call.confirmation)
        except ToolFailure as failure:
            return _call_failure(failure)
        return CallAnswer(
            name=result.entry.exposed,
            tier=result.entry.spec.tier,
            server=result.entry.spec.source,
            call_id=result.call_id,
            duration_ms=result.duration_ms,
            result=result.value,
            truncated=result.truncated,
            spoken=result.spoken,
        )

    async def _summaries(self, entries: Iterable[ToolEntry]) -> list[ToolSummary]:
        left_out, caller = self._prompts.left_out, self._calls.caller
        # 500 tools take 20 ms.
        return await asyncio.to_thread(
            lambda: [self._summary(entry, left_out, caller) for entry in entries]
        )

    def _summary(self, entry: ToolEntry, left_out: Collection[str], caller: Caller) -> ToolSummary:
        spec = entry.spec
        judged = self._policies.judge(entry, caller)
        return ToolSummary(
            name=entry.exposed,
            tier=spec.tier,
            server=spec.source,
            tool=spec.own_name or spec.name,
            description=spec.details or spec.description,
            input_schema=dict(spec.parameters),
            read_only=spec.read_only,
            # What LiveKit's toolsets have found since the table was made is never on demand.
            offered=(
                entry.exposed not in self._remote.table
                or self._remote.stands_in_head(entry.exposed)
            )
            and entry.exposed not in left_out
            and not self._policies.hide(entry),
            effect=judged.effect,
            verdict=judged.action,
        )


def _call_failure(failure: ToolFailure) -> CallFailure:
    kind = failure.kind if failure.kind in _FAILURE_KINDS else "error"
    return CallFailure(
        kind=cast("FailureKind", kind),
        message=str(failure),
        valid_names=list(failure.valid) if isinstance(failure, UnknownTool) else [],
        question=failure.question if isinstance(failure, ConfirmationNeeded) else "",
        confirmation=failure.arguments_hash if isinstance(failure, ConfirmationNeeded) else "",
    )
