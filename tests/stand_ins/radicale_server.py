"""A real Radicale, with one account, for tests of CalDAV."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

USER, PASSWORD = "ann", "correct horse"
_STARTS_S = 30.0
_MAKE = """<?xml version="1.0"?>
<c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>
<d:displayname>{name}</d:displayname>
<c:supported-calendar-component-set><c:comp name="{component}"/>
</c:supported-calendar-component-set></d:prop></d:set></c:mkcalendar>"""


@dataclass(frozen=True, slots=True)
class Radicale:
    """A running server and its account."""

    url: str

    def client(self) -> httpx2.Client:
        return httpx2.Client(auth=(USER, PASSWORD), timeout=10)

    def make_calendar(self, path: str, name: str, component: str = "VEVENT") -> str:
        """Make an empty calendar, and return its address."""
        address = f"{self.url}/{USER}/{path}/"
        body = _MAKE.format(name=name, component=component)
        with self.client() as client:
            client.request("MKCALENDAR", address, content=body).raise_for_status()
        return address

    def put(self, address: str, text: str) -> None:
        """Put an event's calendar at an address."""
        with self.client() as client:
            client.put(
                address, content=text, headers={"Content-Type": "text/calendar"}
            ).raise_for_status()


@contextmanager
def running(folder: Path) -> Iterator[Radicale]:
    """Run a Radicale that keeps its calendars in `folder`."""
    (folder / "users").write_text(f"{USER}:{PASSWORD}\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "server-hosts": f"127.0.0.1:{port}",
        "storage-filesystem-folder": str(folder / "collections"),
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": str(folder / "users"),
        "auth-htpasswd-encryption": "plain",
        "auth-delay": "0",
    }
    command = [sys.executable, "-m", "radicale"]
    for name, value in options.items():
        command += [f"--{name}", value]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait(port, process, folder / "log")
        yield Radicale(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(10)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + _STARTS_S
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"Radicale has not started: {log.read_text()[-2_000:]}")
