"""Gives tests their weights from the cache, or skips them and says how to get the weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from caal_node.weights import Weight, present


def cached(weight: Weight) -> Path:
    if (found := present(weight)) is None:
        pytest.skip(f"{weight.title} is not in the cache; python -m caal_node.weights {weight.key}")
    return found
