"""What a move or a merge of code must not change, kept in `tests/data/frozen`.

`python -m tests.frozen [PART ...]` writes it anew after a change that is meant; the diff of the
files is what has changed. `tests/contract/test_frozen_evidence.py` compares. The parts:

- requests: the bytes of each request of two scripted conversations, by both APIs and all layouts.
  Of each request there is a hash, and of the last one of each layout the whole body.
- replies: what `ReplyParser` and `SpokenReplyParser` make of every labelled, recorded or mutated
  reply, whole and in pieces. Of each reply there is the beginning of a hash.
- tools: `caal-node tools --json` in a folder with tools of every kind.
- words: the control API's description, the help of each command, and the public names.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import inspect
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast
from unittest.mock import patch

import typer
from livekit.agents import utils

from caal_node import LLM, CaalAgent
from caal_node.cli.app import NAME, app
from caal_node.cli.output import PIPE_COLUMNS
from caal_node.config.settings import load_settings
from caal_node.control.app import make_app
from caal_node.core.addresses import Api
from caal_node.core.tool_spec import ToolSpec
from caal_node.policy.policy import Policy
from caal_node.reply_parser import ReplyParser, SpokenReplyParser
from caal_node.testing import AgentConversation, ScriptedToolSource, plain_settings
from caal_node.tools.sources.mcp import McpToolSource
from tests.bench.fuzz_replies import mutated
from tests.bench.layouts import ENVIRONMENT, ROOT, TOOL_TOKENS, own_state
from tests.bench.reply_parser import texts
from tests.bench.scripted_day import SCRIPTS
from tests.bench.scripted_model import Script
from tests.labelled_sentences import sentences
from tests.recorded_n8n import RecordedN8n
from tests.stand_ins import many_tools
from tests.stand_ins.claim_replies import labelled
from tests.stand_ins.fact_pairs import pairs_of
from tests.stand_ins.fake_rooms import FakeRooms
from tests.stand_ins.fifty_tools import result
from tests.stand_ins.reply_examples import CASES, EXAMPLES, PEERS, PEERS_FILE, TOOLS
from tests.stand_ins.stand_in_model import Asked, Reply, StandInModel
from tests.stand_ins.terminal import clean_environment

DATA: Final = Path(__file__).parent / "data"
FOLDER: Final = DATA / "frozen"
RECORD: Final = "python -m tests.frozen"
Files: TypeAlias = Mapping[str, str]
"""Texts by the names of their files in `FOLDER`."""


# -- requests ----------------------------------------------------------------------------------

APIS: Final[tuple[Api, ...]] = ("ollama", "openai")
TOOLS_OFFERED: Final = 30
"""Twice as many as the default budget has room for, so that two layouts differ."""
LAYOUTS: Final[Mapping[str, tuple[bool, Mapping[str, str]]]] = MappingProxyType(
    {
        "whole": (True, {TOOL_TOKENS: "32768"}),
        "whole-text": (False, {TOOL_TOKENS: "32768"}),
        "on-demand": (True, {}),
        "on-demand-text": (False, {}),
    }
)
"""Whether tools are called natively, and the settings."""
SERVER_S: Final = 60.0
"""For the start of an MCP server on a busy machine."""


async def requests() -> Files:
    specs = await _specs()
    hashes: dict[str, list[str]] = {}
    bodies: dict[str, str] = {}
    for api in APIS:
        for layout in LAYOUTS:
            for script in SCRIPTS:
                # A state each: what one conversation used would stand in front of the next one.
                with numbered_ids(), own_state():
                    sent = await _sent(api, layout, script, specs)
                hashes[f"{api} {layout} {script}"] = [
                    hashlib.sha256(each.body).hexdigest() for each in sent
                ]
                bodies[f"requests/{api}-{layout}.json"] = _json(in_lines(sent[-1].json))
    return {"requests.json": _json(hashes), **bodies}


def in_lines(value: Any) -> Any:
    """Return JSON with each text of several lines as their list, so that a diff can be read."""
    match value:
        case str() if "\n" in value:
            return value.split("\n")
        case list():
            return list(map(in_lines, cast("list[Any]", value)))
        case dict():
            return {key: in_lines(one) for key, one in cast("dict[str, Any]", value).items()}
        case _:
            return value


@contextmanager
def numbered_ids() -> Generator[None]:
    """Count LiveKit's ids by their prefix: those of calls are in the requests."""
    counts: Counter[str] = Counter()

    def numbered(prefix: str = "") -> str:
        counts[prefix] += 1
        return f"{prefix}{counts[prefix]:012}"

    made = utils.shortuuid
    with ExitStack() as stack:
        for module in tuple(sys.modules.values()):
            if vars(module).get("shortuuid") is made:
                stack.enter_context(patch.object(module, "shortuuid", numbered))
        yield


async def _specs() -> Sequence[ToolSpec]:
    """Return the tools that the scripts need, and others, as the node reads them of a server."""
    needed = [call.tool for turns in SCRIPTS.values() for turn in turns for call in turn.calls]
    names = dict.fromkeys([*needed, *(tool.name for tool in many_tools.tools())])
    with TemporaryDirectory() as folder:
        arguments = ["-m", "tests.stand_ins.many_tools", *list(names)[:TOOLS_OFFERED]]
        config = Path(folder) / "mcp_servers.json"
        config.write_text(json.dumps({"home": _server(*arguments)}), encoding="utf-8")
        source = McpToolSource(config, call_timeout_s=SERVER_S, ready_s=SERVER_S)
        try:
            listing = await source.discover()
        finally:
            await source.aclose()
    assert len(listing.specs) == TOOLS_OFFERED, listing.failed
    return listing.specs


def _server(*arguments: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": arguments, "env": ENVIRONMENT, "allow": ["env"]}


async def _sent(api: Api, layout: str, name: str, specs: Sequence[ToolSpec]) -> Sequence[Asked]:
    """Hold one scripted conversation, and return its requests."""
    native, env = LAYOUTS[layout]
    script = Script()

    def scripted(asked: Asked) -> Reply:
        return script.next(asked.json)

    async def answered(spec: ToolSpec, _: Any) -> str:
        return result(spec.name.partition("__")[2])

    settings = plain_settings(**env).model_copy(update={"tools": Policy(outside="off")})
    async with StandInModel(answer=scripted) as server:
        url = server.url if api == "ollama" else server.openai_url
        async with aclosing(LLM(server.model, api, url, native_tools=native)) as model:
            source = ScriptedToolSource(*specs, answer=answered)
            agent = CaalAgent(settings=settings, tiers={"mcp": source})
            async with AgentConversation(agent, model) as talk:
                await agent.warmed()
                for turn in SCRIPTS[name]:
                    script.begin(turn)
                    await talk.say(turn.said)
    lost = [*script.given_up, *script.lost_ids]
    assert not lost, f"the {name} by {api}, {layout}: {lost}"
    return [asked for asked in server.requests if asked.path.endswith(("/chat", "/completions"))]


# -- replies -----------------------------------------------------------------------------------

PIECES: Final = MappingProxyType({ReplyParser: (0, 1, 7, 64), SpokenReplyParser: (0, 7)})
"""Characters of a piece, by parser; 0 is the whole reply."""
MUTATED: Final = 2_000
MUTATED_SEED: Final = 1
SHAPE_CHARS: Final = 600
"""Of a text in which every character may begin something."""
LISTS: Final = "[ho]*.txt"
"""Hedges and ordinary replies, one a line."""
CLAIMS: Final = ("tuning", "held_out")
FACTS: Final = tuple(sorted(path.stem for path in (DATA / "facts").glob("*.json")))
MARK_CHARS: Final = 4
"""Of a reply's hash."""
MARKS_A_LINE: Final = 24


@dataclass(frozen=True, slots=True)
class Given:
    """A reply as a parser is given it."""

    text: str
    tools: Sequence[Mapping[str, Any]] = tuple(TOOLS)
    in_thinking: bool = False


async def replies() -> Files:
    read = {name: _read(given) for name, given in corpora().items()}
    if not PEERS:
        path = FOLDER / "replies_read.json"
        read[PEERS_FILE.name] = json.loads(path.read_text(encoding="utf-8"))[PEERS_FILE.name]
    return {"replies_read.json": _json(read)}


def corpora() -> dict[str, list[Given]]:
    """Return the replies of each file. Those of other projects are not always there."""
    household = json.loads((DATA / "reply_household.json").read_text(encoding="utf-8"))
    lines = gzip.decompress((FOLDER / "replies.jsonl.gz").read_bytes()).splitlines()
    recorded = [json.loads(line)["chunks"] for line in lines]
    rng = random.Random(MUTATED_SEED)
    plain: dict[str, Iterable[str]] = {
        **{path.name: path.read_text("utf-8").splitlines() for path in sorted(DATA.glob(LISTS))},
        **{f"claims/{name}": (reply.text for reply in labelled(name)) for name in CLAIMS},
        **{f"facts/{name}": (pair.clause for pair in pairs_of(name)) for name in FACTS},
        # The clauses for tuning are as plain, and seventeen thousand.
        "sentences/answer": (each.text for each in sentences("answer")),
        "sentences/answer held_out": (each.text for each in sentences("answer", held_out=True)),
        "sentences/clause held_out": (each.text for each in sentences("clause", held_out=True)),
        "replies.jsonl.gz": ("".join(c[1] for c in reply if c[0] == "text") for reply in recorded),
        "shapes": texts(SHAPE_CHARS).values(),
    }
    found = {name: list(map(Given, given)) for name, given in plain.items()}
    found["reply_formats.jsonl"] = [Given(c["text"], TOOLS, c["in_thinking"]) for c in CASES]
    found["reply_household.json"] = [
        Given(row["text"], household["tools"]) for row in household["replies"]
    ]
    found["mutated"] = [
        Given(mutated(rng, EXAMPLES), TOOLS if at % 20 else (), at % 10 == 0)
        for at in range(MUTATED)
    ]
    if PEERS:
        found[PEERS_FILE.name] = [
            Given(row["text"], row["tools"], bool(row.get("think_prefill"))) for row in PEERS
        ]
    return found


def _read(given: Sequence[Given]) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    whole, marks = hashlib.sha256(), ""
    for reply in given:
        events = events_of(reply)
        written = repr(events).encode("utf-8", "backslashreplace")
        whole.update(written)
        marks += hashlib.sha256(written).hexdigest()[:MARK_CHARS]
        kinds.update(type(event).__name__ for each in events.values() for event in each)
    step = MARK_CHARS * MARKS_A_LINE
    return {
        "replies": len(given),
        "sha256": whole.hexdigest(),
        "events": dict(sorted(kinds.items())),
        "marks": [marks[at : at + step] for at in range(0, len(marks), step)],
    }


def events_of(reply: Given) -> dict[str, list[Any]]:
    """Return the events of a reply by parser and length of the pieces, as each gives them."""
    found: dict[str, list[Any]] = {}
    for parser_of, sizes in PIECES.items():
        for size in sizes:
            parser = parser_of(reply.tools, in_thinking=reply.in_thinking)
            step = size or len(reply.text) or 1
            events = found[f"{parser_of.__name__} {size}"] = []
            for at in range(0, len(reply.text), step):
                events += parser.feed(reply.text[at : at + step])
            events += parser.finish()
    return found


# -- tools -------------------------------------------------------------------------------------

RUN_S: Final = 120
"""For a whole command on a busy machine."""
AGENT: Final = '''"""An agent with two tools of its own."""

from typing import Annotated, Literal

from livekit.agents import RunContext, function_tool
from pydantic import Field

from caal_node import CaalAgent, effect


class Kitchen(CaalAgent):
    @function_tool
    async def set_oven(
        self,
        context: RunContext,
        celsius: Annotated[int, Field(ge=50, le=250, description="Degrees")],
        mode: Literal["fan", "grill"] = "fan",
    ) -> str:
        """Heat the oven.

        Example: oven to 180 degrees -> {"celsius": 180}

        Args:
            mode: How it heats
        """
        return "heating"

    @effect("destructive")
    @function_tool
    async def clear_shelf(self, shelf: str) -> str:
        """Throw away all that is on a shelf."""
        return "cleared"
'''
RULES: Final = """agent = "my_agent:Kitchen"
cues = "off"

[toolsets.calculator]

[toolsets.lists]
"""
MCP_TOOLS: Final = ("set_light", "list_events", "search_mail")
WORKFLOWS: Final = ("get_weather", "list_events", "secure_lookup")


async def tools() -> Files:
    async with RecordedN8n(active=WORKFLOWS) as n8n:
        with TemporaryDirectory() as name:
            listed = await asyncio.to_thread(_listed, Path(name), n8n)
    found = json.loads(listed)
    for server in found["servers"]:
        server["connect_ms"] = None  # the one figure that was measured
    return {"tools.json": _json(found)}


def _listed(folder: Path, n8n: RecordedN8n) -> str:
    """Run the command in a folder of its own, and return what it prints."""
    (folder / "my_agent.py").write_text(AGENT, encoding="utf-8")
    (folder / "caal.toml").write_text(RULES, encoding="utf-8")
    servers = {"home": _server("-m", "tests.stand_ins.fifty_tools", *MCP_TOOLS)}
    (folder / "mcp_servers.json").write_text(json.dumps(servers), encoding="utf-8")
    own = {name: str(folder / "own") for name in ("CAAL_STATE", "CAAL_CONFIG", "CAAL_CACHE")}
    nobody = {"OLLAMA_HOST": "127.0.0.1:9"}
    there = {"N8N_URL": n8n.base_url, "N8N_API_KEY": n8n.api_key, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "caal_node", "tools", "--json"],
        cwd=folder,
        env=clean_environment(**own, **nobody, **there),
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=True,
    ).stdout


# -- words -------------------------------------------------------------------------------------

LIVEKITS: Final = frozenset({"start", "dev", "console"})
"""Commands whose help is LiveKit's own."""
PACKAGES: Final = ("caal_node", "caal_node.extend", "caal_node.testing", "mcp_bridge", "n8n")
_MODULE: Final = re.compile(r"\b(?:caal_node|mcp_bridge|n8n|livekit)(?:\.[a-z_]\w*)+\.")
"""Where something is defined, which a move may change."""
OURS: Final = frozenset({"caal_node", "mcp_bridge", "n8n"})


WRITERS: Final = ("fastapi", "pydantic", "typer", "click")
"""Packages that write a part of these texts, each version in its own way."""


WRITTEN: Final = ("openapi.json", "help.txt", "writers.txt")
"""What they have a part in."""


def writers() -> str:
    """Return the versions of Python and of `WRITERS`, a line each."""
    python = ".".join(map(str, sys.version_info[:2]))
    return "".join(f"{name} {version(name)}\n" for name in WRITERS) + f"python {python}\n"


async def words() -> Files:
    settings = load_settings({"CAAL_CONTROL_TOKEN": "x" * 32}, Path("no-such-caal.toml"))
    return {
        "openapi.json": _json(make_app(settings, FakeRooms({})).openapi()),
        "help.txt": "".join(_helps(NAME, typer.main.get_command(app), None)),
        "names.txt": "".join(map(_names, PACKAGES)),
        "writers.txt": writers(),
    }


def _helps(name: str, command: Any, parent: Any) -> Iterator[str]:
    """Yield the help of a command and of all in it, as a pipe gets it."""
    command.rich_markup_mode = None
    width = {"terminal_width": PIPE_COLUMNS}
    context = command.make_context(name, [], parent, resilient_parsing=True, **width)
    yield f"== {context.command_path}\n{command.get_help(context)}\n\n"
    for each, inner in getattr(command, "commands", {}).items():
        if each not in LIVEKITS:
            yield from _helps(each, inner, context)


def _names(package: str) -> str:
    """Return a line for each public name of a package, and for each of a class's own."""
    module = import_module(package)
    public = getattr(module, "__all__", None) or import_module(f"{package}.public").__all__
    lines = [f"== {package}"]
    for name in sorted(public):
        value = getattr(module, name)
        lines.append(f"{name}{_signature(value)}")
        if inspect.isclass(value):
            lines += [f"    {each}" for each in _members(value)]
    return _MODULE.sub("", "\n".join([*lines, "", ""]))


def _members(owner: type[Any]) -> list[str]:
    """Return the public attributes of a class that are ours, with their signatures."""
    ours = [base for base in owner.__mro__ if base.__module__.partition(".")[0] in OURS]
    named = {name for base in ours for name in (*vars(base), *inspect.get_annotations(base))}
    public = sorted(name for name in named if not name.startswith("_"))
    return [f"{name}{_signature(inspect.getattr_static(owner, name, None))}" for name in public]


def _signature(value: Any) -> str:
    if isinstance(value, property):
        return f" -> {inspect.signature(value.fget).return_annotation}" if value.fget else ""
    value = getattr(value, "__func__", value)
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return f" = {value!r}" if isinstance(value, str | int) else ""
    try:
        found = inspect.signature(value)
    except ValueError:  # of a class that is made by C
        return ""
    shown = [_plain(parameter) for parameter in found.parameters.values()]
    text = str(found.replace(parameters=shown)).replace("Ellipsis", "...")
    return f"{text} [async]" if inspect.iscoroutinefunction(value) else text


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """Keep a default that is one word or number; another may tell of this machine."""
    default = parameter.default
    is_plain = default is None or type(default) in (str, int, float, bool)
    has_none = default is parameter.empty
    return parameter if is_plain or has_none else parameter.replace(default=...)


# ----------------------------------------------------------------------------------------------

PARTS: Final[Mapping[str, Callable[[], Awaitable[Files]]]] = MappingProxyType(
    {"requests": requests, "replies": replies, "tools": tools, "words": words}
)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


async def record(parts: Sequence[str]) -> None:
    """Write parts of the evidence anew."""
    for part in parts:
        for name, text in (await PARTS[part]()).items():
            path = FOLDER / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(DATA.parent)}: {len(text):,} characters", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        os.environ |= {"CAAL_STATE": f"{folder}/state", "CAAL_CONFIG": f"{folder}/config"}
        asyncio.run(record(given.parts or list(PARTS)))


if __name__ == "__main__":
    main()
