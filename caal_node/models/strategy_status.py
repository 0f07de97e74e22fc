"""Where a model stands on the ladder, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from caal_node.models.strategies import StrategyName


@dataclass(frozen=True, slots=True)
class StrategyStatus:
    model: str
    address: str
    way: StrategyName
    """The way that the next question with tools is asked first."""
    reason: str
    """Why it is not the server's own tool calls; empty where it is."""
    signs: Mapping[str, int]
    """How often each sign of failure was seen."""
    steps: Mapping[str, int]
    """How often each step was taken: once_more, one_reply, protocol, plain, shorter, apology."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
