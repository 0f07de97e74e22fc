"""Tool results of a given size."""

from __future__ import annotations

import json
from typing import Any


def records(size: int) -> list[dict[str, Any]]:
    """Records of about `size` bytes as JSON."""
    one = {"id": 100_000, "name": "Thing number 100000", "price": 1.5, "tags": ["a", "b"]}
    count = size // (len(json.dumps(one)) + 2)
    return [{**one, "id": each, "name": f"Thing number {each}"} for each in range(count)]


def records_json(size: int) -> str:
    return json.dumps(records(size))
