"""One module has every extension point, and says where each is given."""

from __future__ import annotations

import ast
import inspect
import re

import caal_node.extend as extend
from caal_node.agent import CaalAgent
from caal_node.config.settings import FIELDS

PAGE = extend.__doc__ or ""


MADE_WITH = {"CallConversation", "Preview", "ToolCallRequest", "ToolListing"} | {
    "ToolsetServices",
    "VerbatimResult",
}
"""What is only needed to write the others."""


def test_every_name_is_there_and_on_the_page() -> None:
    named = set(re.findall(r"\w+", PAGE))
    assert all(hasattr(extend, name) for name in extend.__all__)
    assert set(extend.__all__) - named == MADE_WITH


def test_every_setting_and_parameter_of_the_page_exists() -> None:
    settings = {f"CAAL_{name.upper()}" for name in FIELDS}
    assert set(re.findall(r"CAAL_[A-Z]+", PAGE)) <= settings
    calls = [ast.parse(each, mode="eval").body for each in re.findall(r"`(CaalAgent\(.*\))`", PAGE)]
    given = {word.arg for call in calls if isinstance(call, ast.Call) for word in call.keywords}
    assert {"tiers", "gates", "hooks", "on_event", "cue_sink"} == given
    assert given <= set(inspect.signature(CaalAgent.__init__).parameters)
