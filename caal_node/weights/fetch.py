"""The weights that can be fetched, and how one gets into the cache from the model hub: whole and
right, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.network.guard import refusal_in
from caal_node.weights import cache

# The catalogue: the weights' files on the model hub, their digests and licences.


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file of a weight. `size` is in bytes, and `sha256` in lower-case hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Weight:
    """A model's files at a pinned revision of the hub."""

    key: str
    """The name of its folder in the cache."""
    title: str
    licence: str
    """An SPDX identifier."""
    hub_repo: str
    hub_revision: str
    """A commit."""
    files: tuple[WeightFile, ...]
    hub_folder: str = ""
    entry: str = ""
    """The file that a loader is given; empty where it is given the folder."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


def _qwen_coder(billions: str, revision: str, size: int, sha256: str) -> Weight:
    """Return a Qwen2.5-Coder of so many billion parameters, with the digest as the hub has it."""
    key = f"qwen2.5-coder-{billions}b-instruct-q4_k_m"
    return Weight(
        key=key,
        title=f"Qwen2.5-Coder {billions}B Instruct, Q4_K_M",
        licence="Apache-2.0",
        hub_repo=f"Qwen/Qwen2.5-Coder-{billions}B-Instruct-GGUF",
        hub_revision=revision,
        files=(WeightFile(f"{key}.gguf", size, sha256),),
        entry=f"{key}.gguf",
    )


QWEN_CODER_05B = _qwen_coder(
    "0.5",
    revision="ebb2015119c907b064c512bf053e945850b5875f",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
)

# It takes four times the work of the 0.5B, and is fetched only when asked for.
QWEN_CODER_15B = _qwen_coder(
    "1.5",
    revision="38f6bab61d341b23a6c00226f32c0d6148bf9f43",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)

WHISPER_TINY_EN = Weight(
    key="faster-whisper-tiny.en",
    title="Whisper tiny.en for CTranslate2",
    licence="MIT",
    hub_repo="Systran/faster-whisper-tiny.en",
    hub_revision="0d3d19a32d3338f10357c0889762bd8d64bbdeba",
    files=(
        WeightFile(
            "model.bin",
            75_537_502,
            "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        ),
        WeightFile(
            "config.json",
            2_317,
            "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        ),
        WeightFile(
            "tokenizer.json",
            2_128_466,
            "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        ),
        WeightFile(
            "vocabulary.txt",
            422_309,
            "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
        ),
    ),
)

# The voice's model card gives CC0 for the recordings it was trained on.
PIPER_JOE = Weight(
    key="piper-en_US-joe-medium",
    title="Piper voice en_US joe, medium",
    licence="CC0-1.0",
    entry="en_US-joe-medium.onnx",
    hub_repo="rhasspy/piper-voices",
    hub_revision="c10ece1aade47bb51c153c893d14e5bf8e5b7117",
    hub_folder="en/en_US/joe/medium/",
    files=(
        WeightFile(
            "en_US-joe-medium.onnx",
            63_201_294,
            "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        ),
        WeightFile(
            "en_US-joe-medium.onnx.json",
            4_794,
            "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        ),
    ),
)

# Digests as the hub publishes them.
MINILM = Weight(
    key="all-minilm-l6-v2",
    title="all-MiniLM-L6-v2, sentence embedding",
    licence="Apache-2.0",
    hub_repo="sentence-transformers/all-MiniLM-L6-v2",
    hub_revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    files=(
        WeightFile(
            "model.safetensors",
            90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        WeightFile(
            "tokenizer.json",
            466_247,
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    ),
)

CATALOGUE = (QWEN_CODER_05B, QWEN_CODER_15B, WHISPER_TINY_EN, PIPER_JOE, MINILM)


HUB_S: Final = 10.0
"""Seconds for the hub to say what a file is."""
SPARE_BYTES: Final = 1_000_000
"""What the hub's client may write besides a file: locks and notes of its own."""
SHOWN_CHARS: Final = 200
"""Characters of a failure's reason that are shown."""
_SCRATCH_PREFIX: Final = "partial-"


def present(weight: Weight, *, folder: Path | None = None) -> Path | None:
    """Return the path for a loader if the whole weight is in the cache, else None.

    A file gets its name only after its digest was right, so looking at its size is enough.
    """
    home = (folder or cache.weights()) / weight.key
    return None if missing_files(weight, home) else home / weight.entry


def missing_files(weight: Weight, home: Path) -> list[WeightFile]:
    """Return the files of `weight` that are not in its folder `home`."""

    def is_there(file: WeightFile) -> bool:
        path = home / file.name
        return path.is_file() and path.stat().st_size == file.size

    return [file for file in weight.files if not is_there(file)]


def ensure(weight: Weight, *, console: Console | None = None, folder: Path | None = None) -> Path:
    """Fetch what is missing of `weight`, and return the path that its loader is given.

    It blocks, and may take minutes. `HF_ENDPOINT` names a mirror of the hub, as for other clients.

    Args:
        weight: One of the catalogue, or of the hub.
        console: Shows size and licence; standard error by default.
        folder: Takes the place of the cache's own folder.

    Raises:
        ConfigError: The hub did not give the right bytes, or the disk is full. The message is one
            line and says what to do.
    """
    folder = folder or cache.weights()
    if found := present(weight, folder=folder):
        return found
    with cache.locked(weight.key, folder):
        home = cache.make(folder / weight.key)
        try:
            _fetch(weight, missing_files(weight, home), home, console or Console(stderr=True))
        except OSError as error:
            raise cache.disk_error(home, error) from error
    return home / weight.entry


def _fetch(weight: Weight, missing: Sequence[WeightFile], home: Path, console: Console) -> None:
    total = sum(file.size for file in missing)
    needed, free = total + SPARE_BYTES, shutil.disk_usage(home).free
    if free < needed:
        what = f"{needed / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free"
        raise OSError(errno.ENOSPC, what)
    for leftover in home.glob(f"{_SCRATCH_PREFIX}*"):
        # A run that was killed left it: under the lock, nobody is using it.
        shutil.rmtree(leftover, ignore_errors=True)
    console.print(
        f"Fetching {weight.title}: {total / 1e6:,.0f} MB, licence {weight.licence}, kept in {home}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    with TemporaryDirectory(prefix=_SCRATCH_PREFIX, dir=home) as scratch:
        for file in missing:
            path = _from_hub(weight, file, Path(scratch), home)
            if why := fault_of(path, file):
                raise failed(weight, why, home)
            path.replace(home / file.name)


def _from_hub(weight: Weight, file: WeightFile, scratch: Path, home: Path) -> Path:
    try:
        # Importing it takes a second, and only some extras have it. It leaves a dict untyped.
        from huggingface_hub import (
            hf_hub_download,  # pyright: ignore[reportUnknownVariableType]
        )
    except ImportError:
        why = "huggingface-hub is not installed: pip install 'caal-node[embedded]'"
        raise failed(weight, why, home) from None
    name = weight.hub_folder + file.name
    try:
        described(weight.hub_repo, name, weight.hub_revision)
        path = hf_hub_download(
            weight.hub_repo,
            name,
            revision=weight.hub_revision,
            local_dir=scratch,
            endpoint=_endpoint(),
            token=False,
            tqdm_class=_bar_up_to(file.size + SPARE_BYTES),
        )
    except Exception as error:  # the client raises what its HTTP client and its checks raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise failed(weight, refusal_in(error) or reason_of(error), home) from error
    return Path(path)


def described(repo: str, name: str, revision: str | None = None) -> tuple[str, int, str]:
    """Ask the hub once for a file's commit, size in bytes and digest.

    The download itself asks again for 23 seconds where the hub does not answer.

    Raises:
        Exception: What the hub's client and its HTTP client raise.
        ImportError: The client is not installed.
    """
    # Importing it takes a second, and only some extras have it. It leaves a dict untyped.
    from huggingface_hub import (
        get_hf_file_metadata,  # pyright: ignore[reportUnknownVariableType]
        hf_hub_url,
    )

    url = hf_hub_url(repo, name, revision=revision, endpoint=_endpoint())
    found = get_hf_file_metadata(url, token=False, timeout=HUB_S, endpoint=_endpoint())
    if not (found.commit_hash and found.size and found.etag):
        raise ValueError("the hub tells neither its size nor its digest")
    return found.commit_hash, found.size, found.etag


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


class _TooMuchError(Exception):
    """More bytes came than the file has."""


def _bar_up_to(bytes_max: int) -> type[Any]:
    """Return a progress bar for the hub's client that stops a download past `bytes_max`."""
    from huggingface_hub.utils import tqdm

    class Bar(tqdm):
        def update(self, n: float | None = 1) -> bool | None:
            if self.n + (n or 0) > bytes_max:
                raise _TooMuchError(f"more than {bytes_max:,} bytes came")
            return super().update(n)

    return Bar


def fault_of(path: Path, file: WeightFile) -> str | None:
    """Return why what is at `path` is not `file`, or None where it is; it is then on the disk."""
    with path.open("r+b") as data:
        if (size := os.fstat(data.fileno()).st_size) != file.size:
            return f"{file.name} has {size:,} bytes, not {file.size:,}"
        if (found := hashlib.file_digest(data, "sha256").hexdigest()) != file.sha256:
            expected = file.sha256[:12]
            return f"{file.name} has the wrong SHA-256 ({found[:12]}…, expected {expected}…)"
        os.fsync(data.fileno())
    return None


def failed(weight: Weight, why: str, home: Path) -> ConfigError:
    """Return the error of a weight that cannot be fetched."""
    return ConfigError(
        f"{weight.title} cannot be fetched ({why}); check the network, set HF_ENDPOINT to a mirror "
        f"of the hub, or copy its files into {home}"
    )


def reason_of(error: BaseException) -> str:
    """Return the first line of what has caused an error, or its name where it says nothing."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines()]
    return next(filter(None, lines), type(error).__name__)[:SHOWN_CHARS]
