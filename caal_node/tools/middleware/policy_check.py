"""Asks the owner's policy about each call, refuses what it denies, and tells the others the rest.

Put one of your own into an agent's list to have a policy in code:

    policy = Policy(rules=[Rule("deny", tools=["unlock_*"], rooms=["nursery-*"])])
    agent.middleware.insert(0, PolicyCheck(policy))
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Protocol

from livekit.agents import llm

from caal_node.core.errors import (
    ConfigError,
    PolicyFaulty,
    RefusedForPerson,
    RefusedWithoutYes,
    ToolRefused,
)
from caal_node.core.items import AssistantItem, Item, ResultItem, Turn, UserItem
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Caller, CallOrigin, Effect, name_reads
from caal_node.policy.policy import Judgement, Policy
from caal_node.policy.provenance import ITEMS_MAX, Described, TracedCall, comes_from_outside
from caal_node.policy.rule import Action
from caal_node.tools.call_middleware import CallMiddleware, Preview, Proceed, ToolCallRequest
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import VOCABULARY
from mcp_bridge.discovery.bm25 import split_terms

# Finds out, for a call that LiveKit runs, whether only a tool's words have asked for it.

SAID_CHARS: Final = 1_000
"""Characters of a request in which words for a tool are looked for: a minute of speech."""


def asked_for_by_a_tool(call: ToolCallRequest, effect: Effect | None = None) -> str:
    """Return why a call needs a person's yes, or "" where it needs none; see `comes_from_outside`.

    `effect` is what the owner's policy takes the tool for; None takes its source's word. Of a call
    of the control API every value is its caller's own, so it needs none.
    """
    if call.context is None or call.caller.origin == "api":
        return ""
    session, spec = call.context.session, call.entry.spec
    items = list(_items(_before(call.call_id, session.history.items)[-ITEMS_MAX:]))
    traced = TracedCall(
        call.entry.exposed,
        call.arguments,
        spec.parameters,
        effect or spec.effect,
        spec.description,
        is_meant(spec.own_name or spec.name, items),
    )
    table = getattr(session.current_agent, "table", None)
    described = table.described if isinstance(table, ToolTable) else Described()
    return comes_from_outside(traced, items, described)


def is_meant(tool: str, items: Sequence[Item]) -> bool:
    """Return whether the person's newest words stand for a word of a tool's name."""
    said = Turn(items).request
    own = frozenset(split_terms(tool))
    return any(not own.isdisjoint(terms) for terms in VOCABULARY.meant(said[:SAID_CHARS]))


def traced_as(entry: ToolEntry, effect: Effect) -> Effect:
    """Return what a tool is taken for where its values are traced to who said them.

    A policy takes a server's word for nothing that it does. Here a tool that says that it reads is
    only judged by where it sends what: else each file that a listing names would be asked about.
    """
    spec = entry.spec
    reads = spec.read_only is not False and name_reads(spec.own_name or spec.name)
    return "read" if effect == spec.effect == "write" and reads else effect


def _before(call_id: str, history: Sequence[llm.ChatItem]) -> Sequence[llm.ChatItem]:
    """Return what the model had read when it made a call. A call that still waits for others is in
    the history where the person has spoken over it, and what they said then asked for no such
    call."""
    for at in range(len(history) - 1, max(-1, len(history) - ITEMS_MAX), -1):
        item = history[at]
        if isinstance(item, llm.FunctionCall) and item.call_id == call_id:
            return history[:at]
    return history


def _items(history: Iterable[llm.ChatItem]) -> Iterator[Item]:
    """Yield what was said, in its order. Calls and instructions are left out, as nothing is traced
    to them; so this takes a third of the time that a prompt's items take."""
    for item in history:
        if isinstance(item, llm.FunctionCallOutput):
            yield ResultItem(item.call_id, item.name, item.output, item.is_error)
        elif isinstance(item, llm.ChatMessage) and item.role in ("user", "assistant"):
            text = "\n".join(part for part in item.content if isinstance(part, str))
            yield UserItem(text) if item.role == "user" else AssistantItem(text)


logger = logging.getLogger("caal_node.tools")

LOGGED: Final = 20
"""Faults and warnings that are logged, and told after a reload; `caal-node doctor` has all."""


class PolicyCheck(CallMiddleware):
    """Refuses the calls that a policy denies.

    Args:
        policy: What is asked until the next `reload`.
        read: Reads the policy anew, in a thread; None keeps the one that is given.
        asks: Whether a middleware behind this one asks for a person's yes where `needs_yes` says
            so. Without one, such calls are refused.
        asks_pin: Whether it asks for the PIN where `needs_pin` says so. Without one, a rule that
            wants the PIN is a fault of the policy.
        runs_dry: Whether one behind this one answers in place of the tool where `is_dry` says so.
            Without one, such calls are refused.
    """

    name: ClassVar[str] = "policy"

    def __init__(
        self,
        policy: Policy,
        read: Callable[[], Policy] | None = None,
        *,
        asks: bool = False,
        asks_pin: bool = False,
        runs_dry: bool = False,
    ) -> None:
        self.policy = policy if asks_pin else policy.without_pin()
        """What is asked now. The owner may replace it; a change holds from the next call on."""
        self._read: Final = read
        self._left_to_others: Final[set[Action]] = {"allow"}
        if asks:
            self._left_to_others.add("confirm")
        if asks_pin:
            self._left_to_others.add("pin")
        if runs_dry:
            self._left_to_others.add("dry_run")
        self._log()

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        judged = self._judge(call)
        if judged.action not in self._left_to_others:
            call.note(self.name, "refused", judged.line, began)
            raise self._refusal(call.entry, judged)
        call.note(self.name, "allowed", judged.line, began)
        return await proceed()

    def check_again(self, call: ToolCallRequest) -> None:
        """Refuse what a reload has forbidden while a person was asked.

        A yes that a rule asks for only since then was never asked for.
        """
        judged = self._judge(call)
        if judged.action == "allow":
            return
        # What is denied now was not when it was judged first, even if that line said so.
        known = judged.action != "deny" and any(
            each.by == self.name and each.line == judged.line for each in call.decisions
        )
        confirmed = any(each.verdict == "confirmed" for each in call.decisions)
        if not known and not (judged.action == "confirm" and confirmed):
            call.note(self.name, "refused", judged.line, time.perf_counter())
            raise self._refusal(call.entry, judged)

    def preview(self, call: ToolCallRequest) -> Preview:
        judged = self._judge(call)
        if judged.action in self._left_to_others:
            return Preview("allowed", judged.line)
        refusal = self._refusal(call.entry, judged)
        return Preview("refused", judged.line, sentence(refusal.spoken))

    def needs_yes(self, call: ToolCallRequest) -> str:
        """Return the line for which a person has to say yes to a call; "" where none does."""
        judged = self._judge(call)
        return judged.line if judged.action in ("confirm", "pin") else ""

    def needs_pin(self, call: ToolCallRequest) -> str:
        """Return the line for which a call needs the PIN as its yes; "" where it needs none."""
        judged = self._judge(call)
        return judged.line if judged.action == "pin" else ""

    def asked_from_outside(self, call: ToolCallRequest) -> str:
        """Return why a call needs a yes as only a tool's words have asked for it, else ""."""
        if not self.policy.traces(call.entry.spec.tier, self._judge(call)):
            return ""
        return asked_for_by_a_tool(call, traced_as(call.entry, self.effect_of(call.entry)))

    def looks_twice(self, call: ToolCallRequest) -> str:
        """Return the line for which a call is judged once more; "" where it is not.

        A person who is asked anyway needs no model that doubts, and what a rule allows is allowed
        whatever a model says.
        """
        model = self.policy.second_look_model
        if not model or self.effect_of(call.entry) == "read":
            return ""
        judged = self._judge(call)
        if judged.by_rule and judged.action == "allow":
            return ""
        if self.needs_yes(call) or self.asked_from_outside(call):
            return ""
        place = self.policy.lines.get("second_look_model")
        return f"{place}, second_look_model" if place else "second_look_model"

    def is_dry(self, call: ToolCallRequest) -> str:
        """Return the line for which a call is only told of; "" where it runs."""
        judged = self._judge(call)
        return judged.line if judged.action == "dry_run" else ""

    def effect_of(self, entry: ToolEntry) -> Effect:
        """Return what a tool may do at worst, as the owner sees it."""
        return self.policy.effect_of(entry.exposed, entry.spec)[0]

    async def reload(self) -> None:
        """Read the policy anew. Of a file that cannot be read at all the last rules stay, with a
        fault: so nothing is allowed that was not, and whatever writes is refused."""
        if self._read is None:
            return
        try:
            policy = await asyncio.to_thread(self._read)
            self.policy = policy if "pin" in self._left_to_others else policy.without_pin()
        except ConfigError as error:
            self.policy = replace(self.policy, faults=(str(error),))
        self._log()

    def _judge(self, call: ToolCallRequest) -> Judgement:
        return self.policy.judge(call.entry.exposed, call.entry.spec, call.caller)

    def _refusal(self, entry: ToolEntry, judged: Judgement) -> ToolRefused:
        """Return the error that the model reads, in the kind whose sentence a person hears."""
        tool = entry.exposed
        if judged.action in ("confirm", "pin"):
            what = "PIN" if judged.action == "pin" else "yes"
            return RefusedWithoutYes(
                f"{tool} was not called: it needs a person's {what}, which cannot be asked for "
                "here. Say so, and do not call it again."
            )
        if judged.action == "dry_run":
            return ToolRefused(f"{tool} was not called, as nothing is called for now. Say so.")
        if judged.line in self.policy.faults:
            return PolicyFaulty(
                f"{tool} was not called: the owner's rules cannot be read, and until that is "
                "mended only tools that read are run. Say so, and do not call it again."
            )
        if judged.is_personal:
            return RefusedForPerson(
                f"{tool} was not called: this person may not use it. Say so, do not call it "
                "again, and offer what other tools can do."
            )
        return ToolRefused(
            f"{tool} was not called: the owner does not allow it here. Say so, do not call it "
            "again, and offer what other tools can do."
        )

    def _log(self) -> None:
        for fault in self.policy.faults[:LOGGED]:
            logger.error("no tool may change anything, as the policy cannot be read: %s", fault)
        for warning in self.policy.warnings[:LOGGED]:
            logger.warning("%s", warning)


_TERMINAL: Final = Caller("terminal")


class HasPlace(Protocol):
    """A conversation, or a caller. `place` is the origin of its calls, and the room's name."""

    @property
    def place(self) -> tuple[CallOrigin, str]: ...


class PolicyChecks:
    """What all policies of one list of middleware say together, without a call."""

    def __init__(
        self,
        middleware: Sequence[CallMiddleware],
        where: HasPlace = _TERMINAL,
    ) -> None:
        """`where` is the conversation that the tools are for."""
        self._middleware: Final = middleware
        self._where: Final = where

    @property
    def checks(self) -> list[PolicyCheck]:
        """Those that the list has now, outermost first."""
        return [each for each in self._middleware if isinstance(each, PolicyCheck)]

    @property
    def faults(self) -> tuple[str, ...]:
        """What cannot be read, each with file, line and fix."""
        return tuple(fault for check in self.checks for fault in check.policy.faults)

    def judge(self, entry: ToolEntry, caller: Caller) -> Judgement:
        """Return what becomes of the caller's call, whatever its arguments.

        Of several policies the first that does not simply allow it is the one that is felt.
        """
        policies = [check.policy for check in self.checks] or [_NONE]
        found = [policy.judge(entry.exposed, entry.spec, caller) for policy in policies]
        return next((each for each in found if each.action == "deny"), None) or next(
            (each for each in found if each.action != "allow"), found[0]
        )

    @property
    def state(self) -> tuple[object, ...]:
        """What `hide` and `lets_run` say of a tool stays the same while this is equal."""
        return (self._where.place, *[check.policy for check in self.checks])

    def hide(self, entry: ToolEntry) -> bool:
        """Say whether the model is not to see a tool here, as nobody here may call it."""
        place = self._where.place
        tool = entry.exposed, entry.spec
        return any(check.policy.denied_to_all(*tool, *place) for check in self.checks)

    def lets_run(self, entry: ToolEntry) -> bool:
        """Say whether a call of a tool would simply run here, for somebody who is not known."""
        origin, room = self._where.place
        return self.judge(entry, Caller(origin, room)).action == "allow"

    async def reload(self) -> None:
        """Read anew the policies that come from a file."""
        for check in self.checks:
            await check.reload()


_NONE: Final = Policy(mode="open", lines={"mode": "no policy"})
"""Stands for an owner's list without a policy."""
