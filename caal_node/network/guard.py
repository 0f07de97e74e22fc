"""Keeps this process to the networks that its settings allow.

Python reports every connection, datagram and lookup of its sockets to audit hooks before it is
made, with the address as it was resolved. So one hook judges what every client does, redirects and
names that lead elsewhere included, and an error from it stops the connection.

It holds for the whole process and for good: several policies (two agents with settings of their
own) all have to allow what is done. What does not pass through Python's sockets is in
`rooms.py` and docs/security.md.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Never, cast

from caal_node.core.errors import ConfigError, NetworkRefused
from caal_node.network.policy import NetworkPolicy, address_of, canonical_name

logger = logging.getLogger("caal_node.network")

DESTINATIONS_MAX: Final = 256
"""Destinations that are logged and counted one by one; further ones are counted together."""
OTHERS: Final = "others"
FOUND_MAX: Final = 512
"""Addresses of listed names that are remembered. A client connects soon after its lookup."""
JUDGED_MAX: Final = 1024
"""Addresses whose judgement is remembered, so that a stream of datagrams costs little."""
CAUSES_MAX: Final = 64
"""Errors within an error that are looked at."""
_PROBE: Final = "caal_node.network.probe"
_HOSTS_MAX_BYTES: Final = 1 << 20
_VSOCK_HERE: Final = 1
"""The context id of this machine itself (VMADDR_CID_LOCAL)."""
_NEVER_LEAVE: Final = frozenset(
    getattr(socket, name)
    for name in ("AF_UNIX", "AF_NETLINK", "AF_ALG", "AF_SYSTEM")
    if hasattr(socket, name)
)
"""Families whose other end is this machine's own kernel or a process on it."""
_INTERNET: Final = frozenset((socket.AF_INET, socket.AF_INET6))
_SPECIAL: Final[Mapping[str, str]] = {"": "0.0.0.0", "<broadcast>": "255.255.255.255"}  # noqa: S104 - judged, not bound
"""Hosts that Python's sockets take for these addresses."""
_OFFLINE: Final[Mapping[str, str]] = {
    "UV_OFFLINE": "1",
    "npm_config_offline": "true",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
}
"""Variables by which programs that fetch packages fetch none. What the owner has set stays."""
_SILENT: Final[Mapping[str, str]] = {
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}
"""Variables by which libraries tell nobody how they are used. ONNX Runtime, of the local speech and
its voice activity, tells Microsoft once it is imported, past Python's sockets."""
_SAYS: Final = "does not allow this connection"
_REFUSAL: Final = re.compile(rf"CAAL_NETWORK=[^\n=]{{1,120}} {_SAYS}")


class _Guard:
    """The policies of this process, and what they have refused."""

    def __init__(self) -> None:
        self.policies: tuple[NetworkPolicy, ...] = ()
        self.refused: dict[str, int] = {}
        self._found: OrderedDict[str, frozenset[str]] = OrderedDict()
        """Resolved address -> the listed names that led to it."""
        self._allowed: set[str] = set()
        """Hosts of sockets' addresses that were allowed before."""
        self._probed = False
        self._lookup = socket.getaddrinfo
        self._judges: Final[Mapping[str, Callable[[tuple[Any, ...]], None]]] = {
            "socket.connect": self._judge_socket,
            "socket.sendto": self._judge_socket,
            "socket.sendmsg": self._judge_socket,
            "socket.getaddrinfo": self._judge_lookup,
            "socket.gethostbyname": self._judge_lookup,
            "socket.gethostbyaddr": self._judge_reverse_by_name,
            "socket.getnameinfo": self._judge_reverse,
            _PROBE: self._note_probe,
        }

    def add(self, policy: NetworkPolicy) -> None:
        if policy.is_open or policy in self.policies:
            return
        first = not self.policies
        if first:
            names_kept_here()  # read once, and not from within a judgement
            _close_other_ways()
        # From here on every policy holds, whatever happens below.
        self.policies, self._allowed = (*self.policies, policy), set()
        if first:
            self._install()
        if policy.names and socket.getaddrinfo.__name__ != self._recording_lookup.__name__:
            self._lookup = socket.getaddrinfo
            socket.getaddrinfo = self._recording_lookup

    def _install(self) -> None:
        judge_of = self._judges.get

        # Every import, file and compiled line passes here: it must cost next to nothing.
        def hook(event: str, args: tuple[Any, ...]) -> None:
            if (judge := judge_of(event)) is not None:
                judge(args)

        sys.addaudithook(hook)
        sys.audit(_PROBE)
        if not self._probed:  # another hook can refuse ours, and Python says nothing then
            raise ConfigError(
                "CAAL_NETWORK: connections cannot be judged, as another audit hook of this "
                "process refuses further ones. Take that hook away, or set CAAL_NETWORK=any."
            )

    def _note_probe(self, _: tuple[Any, ...]) -> None:
        self._probed = True

    def _judge_socket(self, args: tuple[Any, ...]) -> None:
        own, address = args[0], args[1]
        if address is None:  # a message over a connection, which was judged
            return
        family = own.family
        if family in _INTERNET:
            host, allowed = _text(address[0]), self._allowed
            if (
                host not in allowed
                and self._judge_host(host, address[1])
                and len(allowed) < JUDGED_MAX
            ):
                allowed.add(host)
        elif family in _NEVER_LEAVE:
            return
        elif family != getattr(socket, "AF_VSOCK", None) or address[0] != _VSOCK_HERE:
            self._refuse(f"a socket of the family {getattr(family, 'name', family)}")

    def _judge_host(self, host: str, port: int) -> bool:
        """Refuse what is outside; return whether it is inside by its address alone."""
        host = _SPECIAL.get(host, host)
        address = address_of("127.0.0.1" if host == "localhost" else host)
        where = f"{host} port {port}"
        if address is None:  # the kernel's caller has it resolved where nobody sees the outcome
            self._refuse(where)
        names = self._found.get(str(address), frozenset[str]())
        for policy in self.policies:
            if not policy.allows(address, names & policy.names):
                self._refuse(where, policy)
        return not names

    def _judge_lookup(self, args: tuple[Any, ...]) -> None:
        host = args[0]
        if host in (None, "", b""):
            return
        name = _text(host)
        for policy in self.policies:
            if not policy.allows_lookup(name, names_kept_here()):
                self._refuse(f"the name {name}", policy)

    def _judge_reverse(self, args: tuple[Any, ...]) -> None:
        """Judge the address whose name is asked for: a resolver would be told of it."""
        host, port, *_ = args[0]
        self._judge_host(_text(host), port)

    def _judge_reverse_by_name(self, args: tuple[Any, ...]) -> None:
        if address_of(_text(args[0])) is None:
            self._judge_lookup(args)
        else:
            self._judge_host(_text(args[0]), 0)

    def _recording_lookup(self, host: Any, *args: Any, **options: Any) -> list[Any]:
        """`socket.getaddrinfo`, which remembers where the listed names lead."""
        found = self._lookup(host, *args, **options)
        name = canonical_name(_text(host)) if host else ""
        if any(name in policy.names for policy in self.policies):
            for *_, address in found:
                if (read := address_of(_text(address[0]))) is not None:
                    names = self._found.pop(str(read), frozenset[str]())
                    self._found[str(read)] = names | {name}
            while len(self._found) > FOUND_MAX:
                self._found.popitem(last=False)
        return found

    def _refuse(self, destination: str, policy: NetworkPolicy | None = None) -> Never:
        policy = policy or self.policies[0]
        known = destination in self.refused
        key = destination if known or len(self.refused) < DESTINATIONS_MAX else OTHERS
        self.refused[key] = count = self.refused.get(key, 0) + 1
        if count == 1:  # noted before: a handler of logs may itself want to go out
            logger.warning(
                "CAAL_NETWORK=%s refuses %s; add it there, or take away what asks for it. "
                "Further attempts are counted and not logged.",
                policy.shown,
                f"{key} (more than {DESTINATIONS_MAX})" if key == OTHERS else key,
            )
        raise refusal(policy)


_guard: Final = _Guard()


def enforce(policy: NetworkPolicy) -> None:
    """Keep this process to `policy` from now on, beside those that hold already.

    Raises:
        ConfigError: It cannot be kept here; the message says why, and what to do.
    """
    _guard.add(policy)


def policies() -> tuple[NetworkPolicy, ...]:
    """Return the policies that hold in this process; none where nothing is limited."""
    return _guard.policies


def refused() -> Mapping[str, int]:
    """Return how often each destination was refused in this process."""
    return dict(_guard.refused)


def refusal(policy: NetworkPolicy) -> NetworkRefused:
    """Return the error for what `policy` does not allow."""
    return NetworkRefused(errno.EACCES, f"CAAL_NETWORK={policy.shown} {_SAYS}")


def refusal_in(error: BaseException | None) -> str | None:
    """Return what `error` says of a refusal by this process, or None where it has another reason.

    Clients put the refusal behind errors of their own, and some keep only its words.
    """
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < CAUSES_MAX:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, NetworkRefused):
            return cast("str", each.strerror)
        if (said := refusal_words(str(each))) is not None:
            return said
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", each).exceptions
    return None


def refusal_words(text: str) -> str | None:
    """Return the words of a refusal that stand in `text`, such as another process's output."""
    found = _REFUSAL.search(text)
    return found and found[0]


def _text(host: object) -> str:
    """Return a host as text; the standard library takes it as bytes as well."""
    if isinstance(host, bytes | bytearray):
        return host.decode("ascii", "replace")
    return str(host)


@cache
def names_kept_here() -> frozenset[str]:
    """Return the names of the hosts file, which are found without asking anybody."""
    try:
        with Path("/etc/hosts").open("rb") as file:
            lines = file.read(_HOSTS_MAX_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return frozenset()
    entries = (line.partition("#")[0].split()[1:] for line in lines)
    return frozenset(canonical_name(name) for names in entries for name in names)


def _close_other_ways() -> None:
    """Close the ways past Python's sockets that are known and can be closed.

    Raises:
        ConfigError: One of them is in use.
    """
    if sys.platform == "win32":
        raise ConfigError(
            "CAAL_NETWORK: on Windows asyncio connects past Python's sockets, and nothing could "
            "be refused. Set CAAL_NETWORK=any, or limit this program with the firewall."
        )
    if "uvloop" in sys.modules:
        raise ConfigError(
            "CAAL_NETWORK: uvloop is loaded, which connects past Python's sockets. Take it away, "
            "or set CAAL_NETWORK before it is imported."
        )
    # Importing it fails from now on, and whoever would use it (uvicorn) takes asyncio's own loop.
    sys.modules["uvloop"] = cast("Any", None)
    # Behind a proxy nobody sees where a request goes, and a proxy may be on this machine.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"
    for name, value in _OFFLINE.items():  # what this process starts is not seen
        os.environ.setdefault(name, value)
    os.environ |= _SILENT
    # The hub's client else fetches large files with a library that is not Python's.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    if (hub := sys.modules.get("huggingface_hub.constants")) is not None:
        hub.HF_HUB_DISABLE_XET = True  # type: ignore[attr-defined]
