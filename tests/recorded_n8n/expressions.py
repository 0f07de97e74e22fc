"""The recorded workflows' own expressions, for requests other than the recorded ones.

Each function does what its node's JavaScript does, which stands beside it as the recording has it
(a test looks it up there). So a forecast for another city is what that workflow would answer: the
same sunny 21 degrees, which is all that its Set node knows. Nothing else is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from n8n.core.json_values import mapping, sequence
from tests.recorded_n8n.loopback import LoopbackRequest, compact_json

UNDEFINED: Final = object()
"""JavaScript's undefined: JSON.stringify leaves out what has this value."""


@dataclass(frozen=True, slots=True)
class WebhookItem:
    """What a Webhook node hands on as `$json`."""

    request: LoopbackRequest
    body: Any
    params: Mapping[str, str]
    webhook_url: str

    def read(self, name: str) -> Any:
        """Return `$json.body.name`."""
        return mapping(self.body).get(name, UNDEFINED)


@dataclass(frozen=True, slots=True)
class NodeExpression:
    """An expression of a recorded node, and what does the same here."""

    source: str
    """The expression as it stands in the node."""
    evaluate: Callable[[WebhookItem], Any]


def stringify(value: Any) -> str:
    """Write a value as JSON.stringify does."""
    return compact_json(_defined(value))


def _defined(value: Any) -> Any:
    if isinstance(value, dict):
        items = mapping(cast(object, value)).items()
        return {k: _defined(v) for k, v in items if v is not UNDEFINED}
    if isinstance(value, list):
        return [_defined(v) for v in sequence(cast(object, value))]
    if isinstance(value, float):
        if value != value or abs(value) == float("inf"):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return value


def _number(value: Any) -> float:
    """Read a value as JavaScript's `*` does; NaN for what is no number."""
    if isinstance(value, (int, float, str)):
        try:
            return float(value or 0)  # an empty text counts as none
        except ValueError:
            return float("nan")
    return 0.0 if value is None else float("nan")


def _weather(item: WebhookItem) -> Any:
    days = item.read("days")
    days = 1 if days is UNDEFINED or days is None else days
    return {"city": item.read("city"), "days": days, "forecast": "sunny", "high_c": 21}


def _events(item: WebhookItem) -> Any:
    day = item.read("day")
    day = "today" if day is UNDEFINED or not day else day
    return [{"id": i, "title": f"event {i}", "day": day} for i in (1, 2, 3)]


def _units(item: WebhookItem) -> Any:
    asked = {name: item.read(name) for name in ("value", "from", "to")}
    return {**asked, "result": _number(asked["value"]) * 0.621371}


def _echo(item: WebhookItem) -> Any:
    return {
        "headers": item.request.headers,
        "query": item.request.query,
        "params": dict(item.params),
        "body": item.body,
        "webhookUrl": item.webhook_url,
        "mode": "production",
    }


EXPRESSIONS: Mapping[str, NodeExpression] = {
    "get_weather": NodeExpression(
        '{city:$json.body.city, days:$json.body.days ?? 1, forecast:"sunny", high_c:21}', _weather
    ),
    "list_events": NodeExpression(
        'return [1,2,3].map(i=>({json:{id:i,title:"event "+i,'
        'day:$input.first().json.body.day||"today"}}));',
        _events,
    ),
    "units/convert": NodeExpression(
        "{value:$json.body.value, from:$json.body.from, to:$json.body.to, "
        "result:$json.body.value*0.621371}",
        _units,
    ),
    "orders/:orderId": NodeExpression(
        "{id:$json.params.orderId,q:$json.query}",
        lambda item: {"id": item.params["orderId"], "q": item.request.query},
    ),
    "slow_report": NodeExpression(
        '{report:"done", topic:$("Webhook").item.json.body.topic}',
        lambda item: {"report": "done", "topic": item.read("topic")},
    ),
    "fails_handled": NodeExpression(
        '{error:"unknown city", city:$json.body.city}',
        lambda item: {"error": "unknown city", "city": item.read("city")},
    ),
    "secure_lookup": NodeExpression(
        '{id:$json.body.id, secret:"42"}', lambda item: {"id": item.read("id"), "secret": "42"}
    ),
    "multi_a": NodeExpression("{url:$json.webhookUrl}", lambda item: {"url": item.webhook_url}),
    "multi_b": NodeExpression("{url:$json.webhookUrl}", lambda item: {"url": item.webhook_url}),
    "echo": NodeExpression(
        "{headers:$json.headers,query:$json.query,params:$json.params,body:$json.body,"
        "webhookUrl:$json.webhookUrl,mode:$json.executionMode}",
        _echo,
    ),
}
"""They are found by the path of the webhook."""
