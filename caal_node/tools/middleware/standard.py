"""The middleware that an agent's calls go through where its owner gives none in code."""

from __future__ import annotations

from functools import partial

from caal_node.config.file import policy_in
from caal_node.config.settings import Settings
from caal_node.tools.call_middleware import CallMiddleware
from caal_node.tools.middleware.policy_check import PolicyCheck


def standard_middleware(settings: Settings) -> list[CallMiddleware]:
    """Return what the settings ask for, in the order in which a call goes through it.

    1. The policy refuses what may not be called at all.
    2. Limits refuse what was called too often.
    3. A person is asked for a yes.
    4. A dry run answers in place of the tool.
    """
    policy = settings.tools
    check = PolicyCheck(policy, partial(policy_in, policy.source) if policy.source else None)
    return [check]
