"""What a model has shown on the ladder: signs, steps, and where its next turn begins."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from caal_node.models.failure_signals import FailureSignal
from caal_node.models.strategies import CallStrategy, StrategyName

logger = logging.getLogger("caal_node.models")

_PATIENCE: Final[Mapping[FailureSignal, int]] = MappingProxyType({"leaked_call": 3})
_USUAL_PATIENCE: Final = 3
"""Times that asking once more may mend a sign before the model is no longer asked natively. Each
costs a request; asking by text costs a cold prompt, once."""
_PLAIN_AFTER: Final = 2
"""Turns in a row that only a plain reply could end, after which plain replies come first."""
_PLAIN_TURNS: Final = 5
"""Turns that do. Then tools are tried again, since whoever asks for one should get it some day."""
_UNCLOSED_MAX: Final = 3
"""Replies in a row without any thinking, after which it is no longer waited for: one stray closer
would otherwise cost every answer its streaming."""
DOUBTS: Final = frozenset({"unsure", "too_shy", "unsaid"})
"""Signs that belong to a way that works."""


class ModelStats:
    """Of one model on one server."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.native = True
        """Whether it is asked with its server's own tool calls."""
        self.reason = ""
        """Why it is not."""
        self.refuses_schema = False
        self.thinks_aloud = False
        """Whether its replies begin inside a think block that the prompt has opened."""
        self.signals: Final[Counter[FailureSignal]] = Counter()
        self.steps: Final[Counter[str]] = Counter()
        self._against_native: Final[Counter[FailureSignal]] = Counter()
        self._plain_ends = 0
        self._plain_left = 0
        self._unclosed = 0

    def thought_aloud(self) -> None:
        """A reply had the closer of a think block that it had not opened."""
        if not self.thinks_aloud:
            logger.info("%s: its replies begin in thinking", self._model)
        self.thinks_aloud, self._unclosed = True, 0

    def began_in_thinking(self, *, unclosed: bool) -> None:
        """A reply was read so. `unclosed`: it was speech all the same, and had to be held back."""
        self._unclosed = self._unclosed + 1 if unclosed else 0
        if self._unclosed >= _UNCLOSED_MAX:
            self.thinks_aloud = False

    def leave_native(self, reason: str) -> None:
        if self.native:
            logger.info("%s: tools are asked for by text from now on: %s", self._model, reason)
            self.native, self.reason = False, reason

    @property
    def plain_first(self) -> bool:
        """Whether a question with tools is asked plainly for now."""
        return self._plain_left > 0

    def begin(self) -> None:
        """A question with tools is asked."""
        self._plain_left = max(0, self._plain_left - 1)

    def note(self, sign: FailureSignal, way: CallStrategy, *, may_call: bool = True) -> None:
        """`may_call` False: no tools were offered, so nothing is shown of how a model calls."""
        self.signals[sign] += 1
        level = logging.INFO if sign in DOUBTS else logging.WARNING
        logger.log(level, "%s: %s with the %s way", self._model, sign, way.name)
        if sign in DOUBTS or sign == "context_cut":
            return
        patience = 1 if sign == "refused" else _PATIENCE.get(sign, _USUAL_PATIENCE)
        if way.name == "native":
            self._against_native[sign] += may_call
            if self._against_native[sign] >= patience:
                self.leave_native(sign)
        elif sign == "refused" and way.name in ("one_reply", "protocol"):
            self.refuses_schema = True

    def step(self, name: str) -> None:
        self.steps[name] += 1
        logger.info("%s: next step: %s", self._model, name)

    def worked(self, way: CallStrategy, began: StrategyName) -> None:
        """Remember what gave a reply, where it is not what was asked first."""
        if way.name != "plain":
            self._plain_ends = 0
            if began == "native" != way.name:
                self.leave_native("its own tool calls failed, and asking by text worked")
        elif began != "plain":
            self._plain_ends += 1
            if self._plain_ends >= _PLAIN_AFTER:
                self._plain_left = _PLAIN_TURNS
