"""The sample workflows on a real n8n: each is found, called, and answers as its notes promise.

Run by `make test-n8n` alone, as the samples' code needs n8n to run it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from n8n import HeaderAuth, N8nError, N8nTools, Progress
from tests.recorded_n8n.webhooks import RIGHT_CREDENTIALS


@asynccontextmanager
async def opened() -> AsyncGenerator[N8nTools]:
    auth = {"door_code": HeaderAuth(*RIGHT_CREDENTIALS["header auth"])}
    url, key = os.environ["N8N_TEST_URL"], os.environ["N8N_TEST_API_KEY"]
    async with N8nTools(url, api_key=key, webhook_auth=auth) as tools:
        await tools.discover()
        yield tools


@pytest.mark.parametrize(
    ("name", "arguments", "spoken"),
    [
        ("lights", {"action": "on", "room": "kitchen"}, "The kitchen light is on."),
        ("door_code", {}, "Today's code is four two, seven one."),
        (
            "train_times",
            {"to": "Leeds"},
            "The next train to Leeds leaves at 10:42 from platform 3.",
        ),
        (
            "calendar",
            {"action": "add", "day": "2026-06-05", "time": "09:00", "title": "Dentist"},
            "Dentist is in your calendar.",
        ),
    ],
)
async def test_a_sample_speaks_for_itself(
    name: str, arguments: dict[str, Any], spoken: str
) -> None:
    async with opened() as tools:
        assert (await tools.call(name, arguments)).spoken == spoken


async def test_a_sample_that_fails_does_so_in_a_sentence() -> None:
    async with opened() as tools:
        with pytest.raises(N8nError) as caught:
            await tools.call("train_times", {"to": "Rome"})
    assert (caught.value.kind, caught.value.spoken) == ("rejected", "I know no station named Rome.")


async def test_a_slow_sample_tells_its_progress() -> None:
    told: list[Progress] = []
    async with opened() as tools:
        result = await tools.call("report", {"topic": "trees"}, on_progress=told.append)
    assert result.spoken == "The report about trees is done. It has three pages."
    assert len(told) == 1


async def test_no_sample_has_anything_worse_than_advice() -> None:
    names = {
        "lights",
        "door_code",
        "train_times",
        "calendar",
        "weather",
        "report",
        "reload_tools",
        "laundry",
    }
    async with opened() as tools:
        findings = [f for f in await tools.lint() if f.workflow in names]
    assert {f.level for f in findings} <= {"advice"}
