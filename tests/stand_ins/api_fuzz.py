"""Asks every path of an HTTP API by its own OpenAPI document, rightly and wrongly."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any, cast

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

LEFT_OUT = frozenset({"not_a_server_error"})
"""502, 503 and 504 say whose fault it is, and are described; a plain 500 is not, and is found."""
REQUEST_S = 30.0


def fuzz(
    url: str, token: str, *, examples: int, room: str | None = None
) -> Counter[tuple[str, int]]:
    """Ask each operation `examples` times as described and as often otherwise.

    Args:
        room: named in each question that is as described and names none.

    Returns:
        How often each operation ("GET /api/tools") gave each status.

    Raises:
        schemathesis' FailureGroup: an answer is not as described.
    """
    bearer = {"Authorization": f"Bearer {token}"}
    described = requests.get(f"{url}/api/openapi.json", headers=bearer, timeout=REQUEST_S).json()
    schema = schemathesis.openapi.from_dict(described)
    load_all_checks()
    left_out = CHECKS.get_by_names(sorted(LEFT_OUT))
    counts: Counter[tuple[str, int]] = Counter()
    once = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )

    def ask(case: Any) -> None:
        if room is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
            _name(case, room)
        answer = case.call(base_url=url, headers=bearer, timeout=REQUEST_S)
        counts[case.operation.label, answer.status_code] += 1
        case.validate_response(answer, headers=bearer, excluded_checks=left_out)

    for result in schema.get_all_operations():
        for mode in GenerationMode:
            # Of a path that takes nothing, nothing can be wrong.
            with contextlib.suppress(Unsatisfiable):
                once(given(case=result.ok().as_strategy(generation_mode=mode))(ask))()
    return counts


def _name(case: Any, room: str) -> None:
    """Every body takes a room's name, and of those without a body the list of the tools."""
    body = cast("dict[str, Any] | None", case.body)
    if isinstance(body, dict):
        if body.get("room_name") is None:
            case.body = body | {"room_name": room}
    elif case.operation.label == "GET /api/tools" and not case.query:
        case.query = {"room_name": room}
