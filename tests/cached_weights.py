"""Weights for tests: from the cache, or a skip that says how to get them."""

from __future__ import annotations

from pathlib import Path

import pytest

from caal_node.weights import Weight, present


def cached(weight: Weight) -> Path:
    if (found := present(weight)) is None:
        pytest.skip(f"{weight.title} is not in the cache; python -m caal_node.weights {weight.key}")
    return found
