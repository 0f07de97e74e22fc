"""How likely a call is what the person wants, judged without a second model.

A logistic model of a few signals, with its weights in `prompts/call_confidence.toml`. They were
fitted on calls of real small models, and `python -m tests.bench.confidence` measures how far the
probability can be taken at its word (docs/second-look.md).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from caal_node.core.prompt_files import read

ODDS_CAP: Final = 12.0
"""Log odds beyond this are not told apart: the model is as sure as it can be."""


@dataclass(frozen=True, slots=True)
class CallSignals:
    """What is known of one call before it runs.

    A call whose arguments do not fit its tool's schema is never run, so the schema's fit is no
    signal among those that are.
    """

    said: float
    """The share of its arguments' values of which something stands in the conversation; 1 where
    there are none."""
    fit: float
    """How well the tool's own words fit the request, as a share of the tool that they fit best. 0
    where no tool shares a word with it."""
    odds: float | None = None
    """log P(call) - log P(speech) at the reply's first key. None where the server does not tell."""
    name: float | None = None
    """Natural logarithm of the probability of the unlikeliest token of the tool's name."""
    value: float | None = None
    """The same for the arguments' values. None without any, or where the server does not tell."""


_Weights = Mapping[str, float]
_TABLES: Final[Mapping[str, _Weights]] = tomllib.loads(read("call_confidence.toml"))


def features_of(signals: CallSignals) -> dict[str, float]:
    """Return the numbers that the weights are for, each from about 0 to 1, and `bias` as 1.

    Those of the token odds are left out where the server tells none.
    """
    found = {
        "bias": 1.0,
        "said": signals.said,
        "fit": signals.fit,
    }
    if signals.odds is not None and signals.name is not None:
        odds = max(-ODDS_CAP, min(ODDS_CAP, signals.odds))
        found["odds"] = odds / ODDS_CAP
        found["name"] = math.exp(min(0.0, signals.name))
        found["value"] = math.exp(min(0.0, signals.value or 0.0))
    return found


def confidence_of(signals: CallSignals, tables: Mapping[str, _Weights] = _TABLES) -> float:
    """Return the probability, from 0 to 1, that the call is right as it is."""
    features = features_of(signals)
    weights = tables["with_odds" if "odds" in features else "without_odds"]
    return sigmoid(sum(weights[name] * value for name, value in features.items()))


def sigmoid(log_odds: float) -> float:
    """Return the probability of natural log odds, whatever their size."""
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, log_odds))))
