"""Real clients on real sockets: what CAAL_NETWORK does not allow is not reached, and is told.

127.0.0.1 is allowed and 127.0.0.2 is not (`tests/stand_ins/two_places.py`), so no test leaves the
machine. Each case also runs without a limit, where it must arrive: else it would prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stand_ins.two_places import INSIDE, TwoPlaces, answer_of, two_places

pytestmark = pytest.mark.long

BEGIN = """
import asyncio, json, os, socket, sys
from caal_node.network.guard import enforce, refusal_in, refused
from caal_node.network.policy import parse_policy
policy, inside, outside, where = sys.argv[1:5]
enforce(parse_policy(policy))
host, port = outside.removeprefix("http://").split(":")
address = (host, int(port))
def told(error=None):
    print(json.dumps({"refusal": refusal_in(error), "type": type(error).__name__,
                      "counted": refused()}))
def attempt(work):
    try:
        work()
    except Exception as error:
        told(error)
    else:
        told()
"""
CASES = {
    "httpx2 after a redirect": """
import httpx2
attempt(lambda: httpx2.get(inside, follow_redirects=True))""",
    "httpx2 async after a redirect": """
import httpx2
async def work():
    async with httpx2.AsyncClient(follow_redirects=True) as http:
        await http.get(inside)
attempt(lambda: asyncio.run(work()))""",
    "httpx after a redirect": """
import httpx
attempt(lambda: httpx.get(inside, follow_redirects=True))""",
    "requests after a redirect": "import requests\nattempt(lambda: requests.get(inside))",
    "urllib after a redirect": """
import urllib.request
attempt(lambda: urllib.request.urlopen(inside))""",
    "aiohttp after a redirect": """
import aiohttp
async def work():
    async with aiohttp.ClientSession() as http, http.get(inside):
        pass
attempt(lambda: asyncio.run(work()))""",
    "websockets after a redirect": """
import websockets
async def work():
    async with websockets.connect(inside.replace("http", "ws")):
        pass
attempt(lambda: asyncio.run(work()))""",
    "a plain socket": "attempt(lambda: socket.create_connection(address, 5).close())",
    "connect_ex": "attempt(lambda: socket.socket().connect_ex(address))",
    "an address of version 6 for one of version 4": """
attempt(lambda: socket.socket(socket.AF_INET6).connect(("::ffff:" + host, int(port))))""",
    "a host as a number": """
number = int.from_bytes(socket.inet_aton(host))
attempt(lambda: socket.create_connection((str(number), int(port)), 5).close())""",
    "a number given to connect": """
number = hex(int.from_bytes(socket.inet_aton(host)))
attempt(lambda: socket.socket().connect((number, int(port))))""",
    "a datagram": "attempt(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', address))",
    "a datagram by sendmsg": """
attempt(lambda: socket.socket(type=socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, address))""",
    "a connected datagram": """
def work():
    with socket.socket(type=socket.SOCK_DGRAM) as own:
        own.connect(address)
        own.send(b"x")
attempt(work)""",
    "a datagram of asyncio": """
async def work():
    loop = asyncio.get_running_loop()
    protocol = asyncio.DatagramProtocol
    transport, _ = await loop.create_datagram_endpoint(protocol, remote_addr=address)
    transport.sendto(b"x")
    await asyncio.sleep(0)
    transport.close()
attempt(lambda: asyncio.run(work()))""",
    "a thread": """
import threading
def work():
    failed = []
    def run():
        try:
            socket.create_connection(address, 5).close()
        except Exception as error:
            failed.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for each in failed:
        raise each
attempt(work)""",
    "a forked child": """
if os.fork() == 0:
    try:
        socket.create_connection(address, 5).close()
    finally:
        os._exit(0)
os.wait()
try:
    enforce(parse_policy(policy))
    print(json.dumps({"refusal": policy != "any" and "in the child", "type": "", "counted": {}}))
except Exception as error:
    told(error)""",
    "n8n": """
import n8n
async def work():
    async with n8n.N8nTools(outside, api_key="key") as workflows:
        await workflows.discover()
attempt(lambda: asyncio.run(work()))""",
    "an MCP server over HTTP": """
import mcp_bridge
url = outside + "/mcp"
config = mcp_bridge.ServerConfig("far", transport="http", url=url, allow=frozenset(["http"]))
async def work():
    async with mcp_bridge.ServerManager([config]) as manager:
        raise RuntimeError(manager.servers[0].error)
attempt(lambda: asyncio.run(work()))""",
    "an MCP server over WebSocket": """
import mcp_bridge
url = outside.replace("http", "ws")
config = mcp_bridge.ServerConfig("far", transport="websocket", url=url, allow=frozenset(["http"]))
async def work():
    async with mcp_bridge.ServerManager([config]) as manager:
        raise RuntimeError(manager.servers[0].error)
attempt(lambda: asyncio.run(work()))""",
    "Ollama": """
from caal_node.models.model_settings import make_backend
attempt(lambda: asyncio.run(make_backend("m", "ollama", outside, None).capabilities()))""",
    "a model server of OpenAI's API": """
from caal_node.models.model_settings import make_backend
attempt(lambda: asyncio.run(make_backend("m", "openai", outside + "/v1", None).capabilities()))""",
    "an embedding": """
from caal_node.models.embedding import ServerEmbedder
embedder = ServerEmbedder("m", api="ollama", base_url=outside, api_key=None, keep_alive=None)
attempt(lambda: asyncio.run(embedder.embed(["x"])))""",
    "weights of the hub": """
from pathlib import Path
from caal_node.weights import ensure
from tests.stand_ins.weights_stand_ins import weight, weight_file
os.environ["HF_ENDPOINT"] = outside
attempt(lambda: ensure(weight(weight_file("model.bin", b"x")), folder=Path(where)))""",
}
LIMIT = f"{INSIDE},fd00::5"
ARRIVAL_S = 10.0
SAYS = f"CAAL_NETWORK={LIMIT} does not allow this connection"


@pytest.fixture(scope="module")
def servers() -> Iterator[TwoPlaces]:
    with two_places() as found:
        yield found


@pytest.fixture
def places(servers: TwoPlaces) -> TwoPlaces:
    servers.arrived.clear()
    return servers


def run(case: str, policy: str, places: TwoPlaces, folder: Path) -> dict[str, object]:
    arguments = (policy, places.inside, places.outside, str(folder))
    return answer_of(BEGIN + CASES[case], *arguments)


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_allowed_is_not_reached_and_says_so(
    case: str, places: TwoPlaces, tmp_path: Path
) -> None:
    found = run(case, LIMIT, places, tmp_path)
    assert places.arrived == []
    assert found["refusal"] in (SAYS, "in the child")


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("weights")])
def test_without_a_limit_the_same_arrives(case: str, places: TwoPlaces, tmp_path: Path) -> None:
    found = run(case, "any", places, tmp_path)
    assert not found["refusal"]
    assert places.has_arrived(ARRIVAL_S)
