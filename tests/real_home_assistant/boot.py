"""Home Assistant in a folder that later runs find again, and on a port of its own."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

import httpx2

VERSION: Final = os.environ.get("HOME_ASSISTANT_VERSION", "2026.11.0")
"""The version that was recorded."""
PYTHON: Final = os.environ.get("HOME_ASSISTANT_PYTHON", "3.14")
COMMAND: Final = os.environ.get("HOME_ASSISTANT_COMMAND", "")
INSTALL_S: Final = 900
BOOT_S: Final = 300.0
"""The first start installs what its integrations need, which takes about a minute."""
STOP_S: Final = 30.0
POLL_S: Final = 0.5
CONFIGURATION: Final = """
homeassistant:
  name: Test home
  latitude: 52.52
  longitude: 13.40
  elevation: 34
  unit_system: metric
  time_zone: Europe/Berlin
  country: DE
http:
  server_host: 127.0.0.1
  server_port: {port}
api:
config:
onboarding:
websocket_api:
conversation:
demo:
input_boolean:
  guest_mode:
    name: Guest mode
input_number:
  water_target:
    name: Water target
    min: 30
    max: 80
    unit_of_measurement: "°C"
script:
  good_night:
    alias: Good night
    sequence: []
scene:
  - name: Movie night
    entities:
      light.bed_light: "off"
logger:
  default: warning
"""


class HomeAssistantDied(Exception):
    """It ended, was not ready in time, or refused what a test home needs; with what it said."""


def installed() -> list[str]:
    """Return the command that starts Home Assistant, which is installed if it is missing.

    Raises:
        subprocess.CalledProcessError, subprocess.TimeoutExpired: a step of the installation failed.
    """
    if COMMAND:
        return shlex.split(COMMAND)
    default = Path.home() / ".cache" / "caal-node" / f"home-assistant-{VERSION}"
    folder = Path(os.environ.get("HOME_ASSISTANT_HOME") or default)
    uv = [str(Path(sys.executable).parent / "uv")]
    if not (folder / "installed").exists():
        make = [*uv, "venv", "--clear", "--python", PYTHON, str(folder)]
        subprocess.run(make, check=True, timeout=INSTALL_S)
        # The demo needs numpy, and no manifest says so.
        wanted = [f"homeassistant=={VERSION}", "numpy"]
        python = ["--python", str(folder / "bin" / "python")]
        subprocess.run([*uv, "pip", "install", *python, *wanted], check=True, timeout=INSTALL_S)
        (folder / "installed").touch()
    return [str(folder / "bin" / "hass")]


@contextlib.contextmanager
def running(command: list[str], folder: Path) -> Generator[str]:
    """Start Home Assistant on a free port with its configuration in `folder`; yield its address.

    Raises:
        HomeAssistantDied: it did not come up.
    """
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    (folder / "configuration.yaml").write_text(CONFIGURATION.format(port=port))
    url = f"http://127.0.0.1:{port}"
    with (folder / "log.txt").open("w+b") as log:
        process = subprocess.Popen(
            [*command, "--config", str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(process, f"{url}/api/onboarding", folder / "log.txt")
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(url, timeout=5).status_code == 200:
                return
        time.sleep(POLL_S)
    said = log.read_bytes()[-3000:].decode(errors="replace")
    raise HomeAssistantDied(f"Home Assistant did not start:\n{said}")
