"""Answers that come compressed though they were asked for plain: a few bytes that are gigabytes."""

from __future__ import annotations

from caal_node.cli.checks.model import check_model
from caal_node.config.settings import load_settings
from caal_node.control.room_agents import REQUEST_S, ControlError, LiveKitRooms
from caal_node.control.rpc import FetchChunk
from caal_node.tools.sources.n8n import N8nToolSource
from tests.attack.harness import Ending, Probe, attack
from tests.attack.pages import CALL_S, DEADLINES, LOST, STREAMED, model_turn, workflow_turn
from tests.stand_ins.conversation import NOWHERE
from tests.stand_ins.hostile_http_server import API_KEY, hostile_server

FAILED = "Sorry, that workflow failed."


@attack("compression", "a workflow answers 256 MiB as gzip", deadline_s=CALL_S)
async def workflow_json(probe: Probe) -> Ending:
    return await workflow_turn(probe, "packed JSON", FAILED)


@attack("compression", "a workflow answers a page of 64 MiB as gzip", deadline_s=CALL_S)
async def workflow_page(probe: Probe) -> Ending:
    return await workflow_turn(probe, "packed page", FAILED)


@attack("compression", "a workflow streams 256 MiB as gzip", deadline_s=CALL_S)
async def workflow_stream(probe: Probe) -> Ending:
    return await workflow_turn(probe, "packed JSON", FAILED, streams="streaming")


@attack("compression", "n8n lists its workflows in 256 MiB as gzip", deadline_s=CALL_S)
async def workflow_list(probe: Probe) -> Ending:
    async with hostile_server("packed JSON", "list") as url:
        source = N8nToolSource(url, mcp_token=None, api_key=API_KEY, call_timeout_s=CALL_S)
        listing = await probe.watch(source.discover)
        await source.aclose()
    told = " ".join(listing.failed.values())
    return Ending(kept="packed" in told and "switch compression off" in told, heard=told)


@attack("compression", "an OpenAI server streams 256 MiB as gzip", deadline_s=DEADLINES.first)
async def model_events(probe: Probe) -> Ending:
    return await model_turn(probe, "packed events", "openai", LOST, CAAL_DETECTION=STREAMED)


@attack("compression", "Ollama answers 256 MiB as gzip", deadline_s=DEADLINES.first)
async def model_lines(probe: Probe) -> Ending:
    return await model_turn(probe, "packed lines", "ollama", LOST)


@attack("compression", "the doctor asks a model's server that answers 256 MiB", deadline_s=5)
async def doctor(probe: Probe) -> Ending:
    async with hostile_server("packed JSON") as url:
        settings = load_settings({"CAAL_API": "ollama", "OLLAMA_HOST": url}, NOWHERE)
        (finding,) = await probe.watch(lambda: check_model(settings))
    return Ending(kept=finding.status == "fail" and "packs" in finding.found, heard=finding.found)


@attack("compression", "LiveKit answers the control API 256 MiB as gzip", deadline_s=REQUEST_S)
async def livekit(probe: Probe) -> Ending:
    async with (
        hostile_server("packed JSON") as url,
        LiveKitRooms(url, "key", "a secret of thirty-two characters") as rooms,
    ):

        async def told() -> str:
            try:
                return repr(await rooms.ask("room", "agent", FetchChunk(id="1", number=0)))
            except ControlError as error:
                return str(error)

        heard = await probe.watch(told)
    return Ending(kept="check LIVEKIT_URL" in heard, heard=heard)
