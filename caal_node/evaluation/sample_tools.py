"""The tools that a model is tried with: those of a home, as a voice assistant has them.

All cases share them, in this order, so that a server reads the prefix of the prompt once for each
way of asking. Between them they take every type of argument that a schema can ask for. Each has
the two example utterances that a tool's author is asked for; none of them is a case's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from caal_node.core.tool_spec import Example, ToolSchema


def _tool(name: str, description: str, required: list[str], **properties: Any) -> ToolSchema:
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_TEXT: Final = {"type": "string"}

TOOLS: Final[tuple[ToolSchema, ...]] = (
    _tool(
        "get_forecast",
        "Weather forecast of a city.",
        ["city"],
        city=_TEXT,
        days={"type": "integer", "description": "days ahead"},
    ),
    _tool(
        "set_timer",
        "Start a kitchen timer.",
        ["minutes"],
        minutes={"type": "number"},
        label=_TEXT,
    ),
    _tool(
        "switch_light",
        "Switch the light of a room on or off.",
        ["room", "on"],
        room=_TEXT,
        on={"type": "boolean"},
    ),
    _tool(
        "set_heating",
        "Set the heating's mode and temperature.",
        ["mode", "celsius"],
        mode={"type": "string", "enum": ["comfort", "eco", "off"]},
        celsius={"type": "number"},
    ),
    _tool(
        "add_to_list",
        "Put things on one of the person's lists.",
        ["list", "things"],
        list={"type": "string", "enum": ["shopping", "tasks"]},
        things={"type": "array", "items": {"type": "string"}},
    ),
    _tool(
        "book_table",
        "Book a table at a restaurant.",
        ["place", "people"],
        place={
            "type": "object",
            "properties": {"name": {"type": "string"}, "city": {"type": "string"}},
            "required": ["name", "city"],
        },
        people={"type": "integer"},
    ),
)

EXAMPLES: Final[Mapping[str, tuple[Example, ...]]] = {
    "get_forecast": (
        Example("will it be sunny in Porto", {"city": "Porto"}),
        Example(
            "how does the weather look in Graz for the next five days", {"city": "Graz", "days": 5}
        ),
    ),
    "set_timer": (
        Example("remind me in twelve minutes", {"minutes": 12}),
        Example("start a rice timer of eighteen minutes", {"minutes": 18, "label": "rice"}),
    ),
    "switch_light": (
        Example("make it bright in the hall", {"room": "hall", "on": True}),
        Example("it is too bright in the cellar", {"room": "cellar", "on": False}),
    ),
    "set_heating": (
        Example("make it cosy, twenty three degrees", {"mode": "comfort", "celsius": 23}),
        Example("save energy with the heating at sixteen", {"mode": "eco", "celsius": 16}),
    ),
    "add_to_list": (
        Example("we are out of flour and salt", {"list": "shopping", "things": ["flour", "salt"]}),
        Example("I still have to call the bank", {"list": "tasks", "things": ["call the bank"]}),
    ),
    "book_table": (
        Example(
            "get us a table for six at the Anchor in Bristol",
            {"place": {"name": "Anchor", "city": "Bristol"}, "people": 6},
        ),
        Example(
            "dinner for three at Chez Marie in Lyon",
            {"place": {"name": "Chez Marie", "city": "Lyon"}, "people": 3},
        ),
    ),
}
