"""What keeps a process inside: for good, for every part of it, told once and counted.

Each case runs in a process of its own. 127.0.0.1 is inside and 127.0.0.2 is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stand_ins.two_places import INSIDE, OUTSIDE, TwoPlaces, answer_of, run_python, two_places

pytestmark = pytest.mark.long

BEGIN = """
import json, logging, os, socket, sys
from caal_node.core.errors import ConfigError
from caal_node.network.guard import enforce, policies, refusal_in, refused
from caal_node.network.policy import parse_policy
lines = []
class Keep(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())
logging.getLogger("caal_node.network").addHandler(Keep())
def goes(host, port=9):
    try:
        socket.create_connection((host, port), 5).close()
    except OSError as error:
        return refusal_in(error) is None
    return True
def tell(**found):
    print(json.dumps(found))
"""


@pytest.fixture
def places() -> Iterator[TwoPlaces]:
    with two_places() as found:
        yield found


def run(code: str, *arguments: str, **env: str) -> Any:
    return answer_of(BEGIN + code, *arguments, env=env)


# What holds.


def test_one_destination_is_one_line_in_the_log_and_is_counted_from_then_on() -> None:
    found = run("""
enforce(parse_policy("local"))
for _ in range(50):
    goes("192.0.2.1", 80)
goes("192.0.2.1", 443)
goes("printer.example")
tell(lines=lines, refused=refused())""")
    assert found["refused"] == {
        "192.0.2.1 port 80": 50,
        "192.0.2.1 port 443": 1,
        "the name printer.example": 1,
    }
    assert len(found["lines"]) == 3
    assert "CAAL_NETWORK=local refuses 192.0.2.1 port 80" in found["lines"][0]
    assert "add it there" in found["lines"][0]


def test_many_destinations_are_counted_together() -> None:
    found = run("""
enforce(parse_policy("local"))
for port in range(1, 1001):
    goes("192.0.2.1", port)
tell(lines=len(lines), kinds=len(refused()), others=refused()["others"])""")
    assert found == {"lines": 257, "kinds": 257, "others": 1000 - 256}


def test_of_several_policies_all_have_to_allow_and_none_is_taken_back() -> None:
    found = run("""
enforce(parse_policy("127.0.0.1,127.0.0.3"))
first = [goes(f"127.0.0.{n}") for n in (1, 2, 3)]
enforce(parse_policy("127.0.0.1,127.0.0.2"))
second = [goes(f"127.0.0.{n}") for n in (1, 2, 3)]
enforce(parse_policy("any"))
enforce(parse_policy("127.0.0.1,127.0.0.2"))
tell(first=first, second=second, third=goes("127.0.0.3"), count=len(policies()))""")
    assert found["first"] == [True, False, True]
    assert found["second"] == [True, False, False]
    assert (found["third"], found["count"]) == (False, 2)


def test_unix_sockets_are_of_this_machine(tmp_path: Path) -> None:
    found = run(
        """
enforce(parse_policy("127.0.0.1"))
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
one, other = socket.socketpair()
one.sendmsg([b"x"])
tell(got=other.recv(1).decode())""",
        str(tmp_path / "s"),
    )
    assert found == {"got": "x"}


def test_a_socket_of_another_family_is_refused_but_for_what_stays_here() -> None:
    found = run("""
from types import SimpleNamespace
enforce(parse_policy("local"))
VSOCK, BLUETOOTH, ALG = 40, 31, 38
said = []
# As sockets of these families report what they do; few machines have them.
ways = ((VSOCK, (2, 9)), (BLUETOOTH, ("00:00", 1)), (VSOCK, (1, 9)), (ALG, ("", "")))
for family, address in ways:
    try:
        sys.audit("socket.connect", SimpleNamespace(family=family), address)
        said.append(None)
    except OSError as error:
        said.append(refusal_in(error) is not None)
tell(said=said)""")
    assert found["said"] == [True, True, None, None]


# Names.


def test_a_name_outside_is_not_even_looked_up() -> None:
    found = run("""
import _socket
enforce(parse_policy("local"))
said = {}
for name in ("example.com", "data.attacker.example", b"example.com"):
    for look_up in (
        lambda: socket.getaddrinfo(name, 80),
        lambda: _socket.getaddrinfo(name, 80),
        lambda: socket.gethostbyname(name),
        lambda: socket.gethostbyname_ex(name),
        lambda: socket.gethostbyaddr(name),
    ):
        try:
            look_up()
            said[str(name)] = "looked up"
        except OSError as error:
            said.setdefault(str(name), refusal_in(error) or type(error).__name__)
here = [socket.getaddrinfo(name, 80) != [] for name in ("localhost", "127.0.0.1", None)]
reverse = []
for address in ("127.0.0.1", "192.0.2.1"):
    try:
        socket.getnameinfo((address, 80), 0)
        reverse.append("asked")
    except OSError as error:
        reverse.append(refusal_in(error))
tell(said=said, here=here, reverse=reverse)""")
    says = "CAAL_NETWORK=local does not allow this connection"
    assert set(found["said"].values()) == {says}
    assert all(found["here"])
    assert found["reverse"] == ["asked", says]


RESOLVER = """
answers = json.loads(sys.argv[1])
plain = socket.getaddrinfo
def resolver(host, port, *args, **options):
    if host in answers:
        listed = answers[host]
        return plain(listed.pop(0) if len(listed) > 1 else listed[0], port, *args, **options)
    return plain(host, port, *args, **options)
socket.getaddrinfo = resolver
"""
"""A resolver whose answers for a name change from question to question."""


def test_a_name_that_leads_elsewhere_at_the_second_question_is_judged_at_the_connection(
    places: TwoPlaces,
) -> None:
    answers = {"mirror.example.com": [INSIDE, OUTSIDE]}
    found = run(
        RESOLVER
        + """
enforce(parse_policy("127.0.0.1,mirror.example.com"))
port = int(sys.argv[2])
tell(first=goes("mirror.example.com", 9), second=goes("mirror.example.com", port))""",
        json.dumps(answers),
        str(places.outside_port),
    )
    assert found == {"first": True, "second": False}
    assert places.arrived == []


def test_a_listed_name_of_this_network_leads_where_it_leads(places: TwoPlaces) -> None:
    found = run(
        RESOLVER
        + """
enforce(parse_policy("nas"))
port = int(sys.argv[2])
by_address = goes("127.0.0.2", port)
tell(by_address=by_address, by_name=goes("nas", port), inside=goes("127.0.0.1", port))""",
        json.dumps({"nas": [OUTSIDE]}),
        str(places.outside_port),
    )
    assert found == {"by_address": False, "by_name": True, "inside": False}
    assert places.has_arrived(10)


# Other ways out.


@pytest.mark.parametrize("scheme", ["http", "all"])
def test_a_proxy_on_this_machine_takes_nothing_out(places: TwoPlaces, scheme: str) -> None:
    found = run(
        """
enforce(parse_policy("127.0.0.1"))
import asyncio, urllib.request, aiohttp, httpx, httpx2, requests
async def by_aiohttp():
    async with aiohttp.ClientSession(trust_env=True) as http, http.get(sys.argv[1]):
        pass
said = []
for get in (
    lambda: httpx2.get(sys.argv[1]),
    lambda: httpx.get(sys.argv[1]),
    lambda: requests.get(sys.argv[1]),
    lambda: urllib.request.urlopen(sys.argv[1]),
    lambda: asyncio.run(by_aiohttp()),
):
    try:
        get()
        said.append("answered")
    except Exception as error:
        said.append(refusal_in(error) is not None)
tell(said=said)""",
        "http://192.0.2.1/",
        **{f"{scheme}_proxy": places.inside, f"{scheme.upper()}_PROXY": places.inside},
    )
    assert found["said"] == [True] * 5


def test_libraries_that_tell_of_their_use_by_themselves_are_silenced() -> None:
    found = run("""
names = ("ORT_DISABLE_TELEMETRY", "DO_NOT_TRACK")
for name in names:  # those of the test's own process
    os.environ.pop(name, None)
enforce(parse_policy("local"))
tell(after=[os.environ[name] for name in names])""")
    assert found == {"after": ["1", "1"]}


def test_uvloop_is_not_loaded_any_more_and_refused_where_it_is() -> None:
    found = run("""
enforce(parse_policy("local"))
try:
    import uvloop
    said = "imported"
except ImportError:
    said = "not there"
tell(said=said)""")
    assert found == {"said": "not there"}
    found = run("""
import types
sys.modules["uvloop"] = types.ModuleType("uvloop")
try:
    enforce(parse_policy("local"))
except ConfigError as error:
    tell(said=str(error), holds=len(policies()))""")
    assert "uvloop" in found["said"]
    assert found["holds"] == 0


def test_where_the_hook_is_refused_nothing_goes_on_as_if_it_held() -> None:
    found = run("""
def veto(event, args):
    if event == "sys.addaudithook":
        raise RuntimeError("no")
sys.addaudithook(veto)
try:
    enforce(parse_policy("local"))
except ConfigError as error:
    tell(said=str(error))""")
    assert "another audit hook" in found["said"]


def test_on_windows_a_limit_is_refused_as_asyncio_would_pass_it_by() -> None:
    found = run("""
sys.platform = "win32"
try:
    enforce(parse_policy("local"))
except ConfigError as error:
    tell(said=str(error))""")
    assert "Windows" in found["said"]


# Every part of the program.


def test_an_agent_and_a_model_keep_their_process_inside() -> None:
    for make in (
        "from caal_node import CaalAgent as Make; Make()",
        "from caal_node import LLM as Make; Make('m')",
        "from caal_node.cli.worker import load_models; from types import SimpleNamespace;"
        "load_models(SimpleNamespace(userdata={}))",
        "from caal_node.livekit_plugin import CaalPlugin; CaalPlugin().download_files()",
    ):
        found = run(
            f"before = goes('127.0.0.2')\n{make}\ntell(before=before, after=goes('127.0.0.2'))",
            **dict.fromkeys(("CAAL_STT", "CAAL_TTS", "CAAL_VAD"), "none"),
            CAAL_NETWORK=INSIDE,
        )
        assert found == {"before": True, "after": False}, make


def test_a_room_outside_is_not_entered_and_no_server_outside_is_asked(places: TwoPlaces) -> None:
    found = run(
        """
import asyncio
from livekit import rtc
from caal_node.network import rooms
given = []
async def connect(self, url, token, options):
    given.append([each for server in options.rtc_config.ice_servers for each in server.urls])
async def enter(url, *servers):
    named = [rtc.IceServer(urls=list(servers))] if servers else []
    config = rtc.RtcConfiguration(ice_servers=named) if servers else None
    try:
        await rtc.Room().connect(url, "token", rtc.RoomOptions(rtc_config=config))
        return "entered"
    except OSError as error:
        return refusal_in(error)
rooms.enforce_with_rooms(parse_policy("127.0.0.1"))
port = sys.argv[1]
refused_room = asyncio.run(enter(f"ws://127.0.0.2:{port}"))
rooms._plain_connect = connect
tell(
    outside=refused_room,
    named=asyncio.run(enter("wss://project.livekit.cloud")),
    inside=asyncio.run(enter(f"ws://127.0.0.1:{port}")),
    own=asyncio.run(enter(f"ws://127.0.0.1:{port}", "stun:127.0.0.1:3478")),
    stun=asyncio.run(enter(f"ws://127.0.0.1:{port}", "turn:192.0.2.1:3478?transport=udp")),
    given=given,
    lines=lines,
)""",
        str(places.outside_port),
    )
    says = f"CAAL_NETWORK={INSIDE} does not allow this connection"
    assert (found["outside"], found["named"], found["stun"]) == (says, says, says)
    assert (found["inside"], found["own"]) == ("entered", "entered")
    assert found["given"] == [["stun:127.0.0.1:9"], ["stun:127.0.0.1:3478"]]
    assert "LIVEKIT_URL" in found["lines"][0]
    assert places.arrived == []


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("chat", "--json"), "is outside: CAAL_NETWORK=127.0.0.1"),
        (("validate", "m"), "CAAL_NETWORK=127.0.0.1"),
        (("n8n", "check", "--instance"), "CAAL_NETWORK=127.0.0.1"),
        (("tools",), "CAAL_NETWORK=127.0.0.1"),
        (("doctor",), "Add it to CAAL_NETWORK"),
    ],
)
def test_each_command_stays_inside_and_says_what_it_did_not_ask(
    command: tuple[str, ...], says: str, places: TwoPlaces, tmp_path: Path
) -> None:
    done = run_python(
        "import os, sys; os.chdir(sys.argv.pop(1)); from caal_node.cli.app import main; main()",
        str(tmp_path),
        *command,
        env={
            "CAAL_NETWORK": INSIDE,
            "CAAL_MODEL": "m",
            "OLLAMA_HOST": places.outside,
            "N8N_URL": places.outside,
            "N8N_API_KEY": "key",
            "COLUMNS": "300",
        },
    )
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert places.arrived == []


def test_a_wrong_word_of_the_setting_is_one_line_with_its_place() -> None:
    done = run_python(
        "import sys; from caal_node.cli.app import main; main()",
        "doctor",
        env={"CAAL_NETWORK": "local,http://nas"},
    )
    assert done.returncode == 1
    assert "CAAL_NETWORK" in done.stderr
    assert "without scheme and port" in done.stderr
