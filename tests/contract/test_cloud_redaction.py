"""A conversation with a model elsewhere, over LiveKit's real plugins: what leaves the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from caal_node.agent import CaalAgent
from caal_node.config.process_guard import ALLOW_CONTENT
from caal_node.config.setting_tables import Trace
from caal_node.core.tool_spec import ToolSpec
from caal_node.factories import make_llm
from caal_node.models.llm import LLM
from caal_node.policy.policy import Policy
from caal_node.redaction.settings import RedactionSettings
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from tests.stand_ins.cloud_stand_ins import KEY, MODEL, CloudStandIn
from tests.stand_ins.conversation import FakeTier
from tests.stand_ins.stand_in_model import Call

pytestmark = pytest.mark.usefixtures("guarded_process")
ROOM_SECRET = "room-secret-of-the-owner"  # noqa: S105 - it opens nothing
ADDRESS, PHONE = "ann.lee@example.org", "+47 22 33 44 55"
APIS = pytest.mark.parametrize("api", ["anthropic", "google"])
MAIL = ToolSpec(
    "n8n", "n8n", "send_mail", "send_mail", "Sends mail.",
    {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
)  # fmt: skip
CONTACTS = ToolSpec(
    "n8n", "n8n", "contacts", "contacts", "Finds people.", {"type": "object", "properties": {}}
)


async def book(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    if spec.name == "contacts":
        return {"name": "Ann", "mail": ADDRESS, "phone": PHONE, "file": "/home/owner/ann.vcf"}
    return {"sent": arguments["to"]}


@APIS
async def test_mail_it_to_her_works_and_the_address_stays_here(api: str) -> None:
    script = (
        Call("contacts", {}),
        "Her address is [email 1].",
        Call("send_mail", {"to": "[email 1]"}),
        "It went to [email 1].",
    )
    async with CloudStandIn(*script) as service:
        settings = plain_settings(
            CAAL_API=api,
            CAAL_MODEL=MODEL,
            CAAL_BASE_URL=service.url,
            CAAL_API_KEY=KEY,
            CAAL_TOOL_CALLS="native",
            CAAL_REDACTION=json.dumps({"personal": ["email", "phone"], "paths": True}),
        )
        tier = FakeTier(CONTACTS, MAIL, answer=book)
        # Else the person would be asked about an address that they did not say.
        settings = settings.model_copy(update={"tools": Policy(outside="off")})
        agent = CaalAgent(settings=settings, tiers={"n8n": tier}, warm=False)
        model = make_llm(settings)
        async with AgentConversation(agent, model) as talk:
            first = await talk.say("What is Ann's address?")
            second = await talk.say(f"Mail it to her, not to my {PHONE}.")
            heard = " ".join(str(item) for item in talk.history)
        await model.aclose()
    sent = json.dumps(service.chats)
    assert not any(part in sent for part in (ADDRESS, PHONE, PHONE[4:], "/home/owner"))
    assert "[email 1]" in sent
    assert "[phone 1]" in sent
    assert "~/ann.vcf" in sent
    assert tier.calls[-1] == ("send_mail", {"to": ADDRESS})
    assert f"Her address is {ADDRESS}." in heard, "the person hears it"
    # Events are for programs and logs, and lose it for good.
    assert (first.text, second.text) == ("Her address is [email].", "It went to [email].")
    assert second.calls[0].arguments == {"to": "[email]"}
    for before, after in zip(service.chats, service.chats[1:], strict=False):
        key = "messages" if "messages" in before else "contents"
        assert after[key][: len(before[key]) - 1] == before[key][:-1], "the prefix stays"


async def test_a_key_in_any_part_of_a_prompt_stays_here_without_any_setting() -> None:
    token = "ghp_" + "a1B2" * 9
    async with CloudStandIn("Fine.") as service:
        settings = plain_settings(
            CAAL_API="anthropic", CAAL_MODEL=MODEL, CAAL_BASE_URL=service.url, CAAL_API_KEY=KEY,
            CAAL_TOOL_CALLS="native", LIVEKIT_API_SECRET=ROOM_SECRET,
        )  # fmt: skip
        agent = CaalAgent(
            instructions=f"The room's secret is {ROOM_SECRET}, {ADDRESS}.",
            settings=settings,
            tiers={},
            warm=False,
        )
        model = make_llm(settings)
        async with AgentConversation(agent, model) as talk:
            await talk.say(f"My token is {token}, and password=hunter22.")
        await model.aclose()
    sent = json.dumps(service.chats)
    assert not any(part in sent for part in (token, ROOM_SECRET, "hunter22", KEY))
    assert ADDRESS in sent, "personal data is the owner's to name"


async def test_any_livekit_model_behind_the_node_reads_no_key_either() -> None:
    class Far(ScriptedModel):
        """It stands for a model of another plugin."""

    far = Far("Fine.", "And [email 1].")
    redaction = RedactionSettings(personal=("email",))
    model = LLM.over(far, redaction=redaction)
    agent = CaalAgent(settings=plain_settings(), tiers={}, warm=False)
    token = "ghp_" + "a1B2" * 9
    async with AgentConversation(agent, model) as talk:
        await talk.say(f"My token is {token}.")
        await talk.say(f"My address is {ADDRESS}.")
        said = [item.text_content for item in talk.history if item.type == "message"]
    asked = repr(far.requests)
    assert token not in asked
    assert ADDRESS not in asked
    assert said[-1] == f"And {ADDRESS}."
    await model.aclose()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    from livekit.agents import telemetry

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer: Any = telemetry.tracer
    monkeypatch.setattr(tracer, "_tracer", tracer._tracer)
    monkeypatch.setattr(tracer, "_tracer_provider", tracer._tracer_provider)
    telemetry.set_tracer_provider(provider)
    return exporter


async def test_livekits_spans_leave_without_content(spans: InMemorySpanExporter) -> None:
    words = ("Where is the silver kept", "It is under the stairs", "silver-drawer")
    tier = FakeTier(MAIL, answer=book)
    agent = CaalAgent(settings=plain_settings(), tiers={"n8n": tier}, warm=False)
    model = ScriptedModel([ScriptedCall("send_mail", {"to": words[2]})], words[1])
    async with AgentConversation(agent, model) as talk:
        await talk.say(words[0])
    exported = [span.to_json() for span in spans.get_finished_spans()]
    assert any("send_mail" in span for span in exported), "names of tools are there"
    assert not any(part in span for span in exported for part in words)


def test_a_program_that_wants_whole_spans_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from livekit.agents.telemetry.utils import allow_pii_from_env

    assert allow_pii_from_env() is False
    monkeypatch.setenv(ALLOW_CONTENT, "1")
    assert allow_pii_from_env() is True


def test_the_trace_is_written_where_the_settings_say(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    assert plain_settings(CAAL_TRACE=str(file)).trace == Trace(file=file)
    whole = plain_settings(CAAL_TRACE=json.dumps({"file": str(file), "content": True}))
    assert whole.trace == Trace(file=file, content=True)
