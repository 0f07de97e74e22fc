"""The middleware that an agent's calls go through where its owner gives none in code."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from caal_node.config.file import policy_in
from caal_node.config.settings import Settings
from caal_node.config.switches import Switches
from caal_node.tools.call_middleware import CallMiddleware
from caal_node.tools.middleware.confirmation import Confirmation
from caal_node.tools.middleware.dry_run import DRY_RUN, DryRun
from caal_node.tools.middleware.limits import CallLimits
from caal_node.tools.middleware.policy_check import PolicyCheck
from caal_node.tools.middleware.second_look import OtherModel, SecondLook, doubted
from caal_node.tools.middleware.waiting_words import WaitingWords
from caal_node.tools.pin import Pin

logger = logging.getLogger("caal_node.tools")


def standard_middleware(
    settings: Settings, switches: Switches | None = None
) -> list[CallMiddleware]:
    """Return what the settings ask for, in the order in which a call goes through it. What the
    `switches` of a conversation have off is off.

    1. The policy refuses what may not be called at all.
    2. Limits refuse what was called too often.
    3. A dry run answers in place of the tool, and nobody is asked about what will not be done.
    4. What may be meant otherwise is looked at once more.
    5. A person is asked for a yes, or for the PIN.
    6. What takes long is told to whoever waits.

    Raises:
        ConfigError: The PIN cannot be used as one.
    """
    source = settings.tools.source
    pin = Pin.of(settings)
    policy = PolicyCheck(
        settings.tools,
        partial(policy_in, source) if source else None,
        asks=True,
        asks_pin=pin is not None,
        runs_dry=True,
    )
    return [
        policy,
        CallLimits(lambda: policy.policy.limits, effect_of=policy.effect_of),
        DryRun(lambda call: dry_run_line(settings) or policy.is_dry(call)),
        SecondLook(policy.looks_twice, OtherModel(settings, policy)),
        Confirmation(
            lambda call: policy.needs_yes(call) or policy.asked_from_outside(call) or doubted(call),
            policy.needs_pin,
            pin,
        ),
        *(
            [WaitingWords(switches or Switches(settings))]
            if settings.cues.on and settings.cues.words
            else []
        ),
    ]


def effective_middleware(
    settings: Settings,
    given: Sequence[CallMiddleware] | None,
    switches: Switches | None = None,
) -> list[CallMiddleware]:
    """Return what an owner has given in code, or the standard; a dry run holds with either."""
    effective = standard_middleware(settings, switches) if given is None else list(given)
    if line := dry_run_line(settings):
        logger.warning("%s: %s", line, DRY_RUN)
        if not any(isinstance(each, DryRun) for each in effective):
            effective.append(DryRun(lambda _: line))
    return effective


def dry_run_line(settings: Settings) -> str:
    """Return by which setting no tool is called at all; "" where tools are."""
    return "dry_run is on" if settings.dry_run else ""
