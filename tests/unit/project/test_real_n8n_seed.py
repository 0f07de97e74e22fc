"""What `make test-n8n` puts into a real n8n."""

from __future__ import annotations

from tests.real_n8n.seed import copies, recorded, samples


def test_workflows_are_planned_as_the_public_api_takes_them() -> None:
    planned = [*recorded(), *samples(), *copies(3)]
    for one in planned:
        assert set(one.body) == {"name", "nodes", "connections", "settings"}
        assert one.body["nodes"]
    paths = [
        node["parameters"]["path"]
        for one in planned
        for node in one.body["nodes"]
        if node["type"] == "n8n-nodes-base.webhook"
    ]
    assert len(set(paths)) == len(paths), "n8n refuses a second webhook on one path"


def test_namesakes_keep_their_order_and_a_draft_comes_after_its_version() -> None:
    planned = list(recorded())
    weather = [one for one in planned if one.body["name"] == "get_weather"]
    hooks = [one.body["nodes"][0]["parameters"]["path"] for one in weather]
    assert hooks == ["get_weather", "get_weather_2"]
    (echo,) = (one for one in planned if one.draft is not None)
    assert echo.body["name"] == "echo"
