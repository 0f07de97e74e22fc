"""What may stand where a file of ours should: pipes, devices, giants, others' files, nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
import stat
import struct
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from caal_node.cli.checks import in_thread
from caal_node.cli.doctor import CHECKS
from caal_node.config.settings import Settings, load_settings
from caal_node.evaluation.store import EvaluationStore
from caal_node.factories import session_llm
from caal_node.prompt_builder import instructions_of
from caal_node.room.cue_files import load_wav
from mcp_bridge import InputAnswers, Pins, ServerConfig, VectorCache, load_servers
from mcp_bridge.core.tools import ToolDefinition
from mcp_bridge.serve.options import TlsFiles, find_token, tls_context
from mcp_bridge.transports.oauth import SignInFile
from tests.attack.harness import Ending, Probe, attack

FILES: Final = "files"
STUCK_S: Final = 1.0
GIANT_BYTES: Final = 8 << 30
CONFIG: Final = ServerConfig(name="files", command="x")
TOOL: Final = ToolDefinition("read", "Reads.", {"type": "object"})
STRANGER: Final = 54321
"""No user of this machine has this number."""

READERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "caal.toml": lambda path: load_settings({}, path),
    "mcp_servers.json": load_servers,
    "instructions": lambda path: instructions_of(Settings(instructions=path)),
    "cue": load_wav,
    "token": lambda path: find_token(path, {}),
    "certificate": lambda path: tls_context(TlsFiles(path)),
    "sign-in": lambda path: asyncio.run(SignInFile(path, "https://x").known()),
    "pins": lambda path: _pins_at(path),
    "vectors": lambda path: _vectors_at(path),
    "validations": lambda path: EvaluationStore(path).of("ollama", "m"),
}


def _pins_at(path: Path) -> object:
    """Have `path` read as the pins of one server, whose file's name is a digest."""
    folder = path.parent / f"pins-{path.name}"
    pins = Pins(folder)
    pins.vet(CONFIG, [TOOL])
    pins.write()
    [file] = folder.glob("*.json")
    file.unlink()
    file.symlink_to(path)
    again = Pins(folder)
    again.read([CONFIG])
    return again.vet(CONFIG, [TOOL]).held


def _vectors_at(path: Path) -> object:
    folder = path.parent / f"vectors-{path.name}"
    cache = VectorCache(folder)
    folder.mkdir()
    cache._path("e").symlink_to(path)  # pyright: ignore[reportPrivateUsage]
    return cache.read("e", ["text"])


async def _read_all(path: Path) -> dict[str, str]:
    """What each reader says of `path`; "stuck" where it says nothing within a second."""
    said: dict[str, str] = {}
    for name, read in READERS.items():
        try:
            async with asyncio.timeout(STUCK_S):
                found = await in_thread(lambda read=read: read(path))
                said[name] = f"taken: {found}"[:60]
        except TimeoutError:
            said[name] = "stuck"
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}".replace(str(path.parent), "")
    return said


HARMLESS: Final = frozenset({"sign-in", "vectors", "validations"})
"""These are done without, as if they were not there; a log says so."""


def _ending(said: Mapping[str, str]) -> Ending:
    kept = all(
        words.startswith("ConfigError: ") or (name in HARMLESS and words.startswith("taken: "))
        for name, words in said.items()
        if name != "pins"
    )
    return Ending(
        kept=kept and "what was accepted of its server cannot" in said["pins"],
        heard=" | ".join(f"{name}: {words[:70]}" for name, words in said.items()),
    )


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@attack(FILES, "a FIFO in place of every file", deadline_s=2, limit_s=40)
async def fifo(probe: Probe) -> Ending:
    with _folder() as folder:
        os.mkfifo(folder / "f", 0o600)
        return _ending(await probe.watch(lambda: _read_all(folder / "f")))


@attack(FILES, "a device without end in place of every file", deadline_s=2, limit_s=40)
async def device(probe: Probe) -> Ending:
    with _folder() as folder:
        (folder / "f").symlink_to("/dev/zero")
        return _ending(await probe.watch(lambda: _read_all(folder / "f")))


@attack(FILES, "8 GiB in place of every file", deadline_s=4, limit_s=60)
async def giant(probe: Probe) -> Ending:
    with _folder() as folder:
        with (folder / "f").open("wb") as file:
            file.truncate(GIANT_BYTES)
        (folder / "f").chmod(0o600)
        return _ending(await probe.watch(lambda: _read_all(folder / "f")))


@attack(FILES, "a socket and a folder in place of every file", deadline_s=3, limit_s=40)
async def not_files(probe: Probe) -> Ending:
    with _folder() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        (folder / "d").mkdir()

        async def read() -> list[Ending]:
            return [_ending(await _read_all(folder / name)) for name in "sd"]

        endings = await probe.watch(read)
    return Ending(
        kept=all(one.kept for one in endings), heard=" || ".join(one.heard for one in endings)
    )


def _acl(*entries: tuple[int, int, int]) -> bytes:
    """An access ACL as Linux keeps it: version 2, then tag, permissions and id of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NO_ID: Final = 0xFFFFFFFF
BY_A_STRANGER: Final = _acl(
    (USER_OBJ, 6, NO_ID),
    (USER, 6, STRANGER),
    (GROUP_OBJ, 4, NO_ID),
    (MASK, 6, NO_ID),
    (OTHER, 0, NO_ID),
)


def _shared_with(path: Path, how: str) -> None:
    match how:
        case "everybody":
            path.chmod(0o666)
        case "a user by an ACL":
            os.setxattr(path, "system.posix_acl_access", BY_A_STRANGER)
        case "whoever writes the folder":
            path.parent.chmod(0o777)
        case _:
            os.chown(path, STRANGER, -1)


HOW: Final = ("everybody", "a user by an ACL", "whoever writes the folder", "its other owner")
WRITTEN: Final = {"caal.toml": 'model = "x"\n', "mcp_servers.json": '{"a": {"command": "x"}}'}


@attack(FILES, "others may write what decides what is started", deadline_s=2)
async def others_write(probe: Probe) -> Ending:
    async def read() -> dict[str, str]:
        said: dict[str, str] = {}
        for name, text in WRITTEN.items():
            for how in HOW:
                with _folder() as folder:
                    path = folder / name
                    path.write_text(text, encoding="utf-8")
                    path.chmod(0o600)
                    READERS[name](path)  # it is taken as it is
                    try:
                        _shared_with(path, how)
                    except OSError as error:
                        if error.errno not in (errno.EPERM, errno.ENOTSUP):
                            raise
                        continue  # only root gives files away; some disks keep no ACLs
                    try:
                        READERS[name](path)
                    except Exception as error:
                        said[f"{name}, {how}"] = str(error).replace(str(folder), "")
                    else:
                        said[f"{name}, {how}"] = "taken"
        return said

    said = await probe.watch(read)
    return Ending(
        kept=len(said) >= 4 and all("run: ch" in words for words in said.values()),
        heard=" | ".join(f"{what}: {words[:90]}" for what, words in said.items()),
    )


@attack(FILES, "a file where the folder for state should be", deadline_s=6)
async def state_is_a_file(probe: Probe) -> Ending:
    """The session's model is made all the same, and doctor names the fix that there is."""
    with _folder() as folder:
        state = folder / "state"
        state.write_text("no folder", encoding="utf-8")
        os.environ["CAAL_STATE"] = str(state)

        async def start() -> tuple[str, str, str]:
            model = await session_llm(Settings())
            await model.aclose()
            pins = Pins(state / "mcp-pins")
            await asyncio.to_thread(pins.read, [CONFIG])
            [held] = pins.vet(CONFIG, [TOOL]).held.values()
            [check] = [one for one in CHECKS if one.name == "state"]
            [found] = await check.run(Settings())
            return model.model, held, f"{found.status}: {found.found} {found.fix}"

        try:
            model, held, doctor = await probe.watch(start)
        except Exception as error:
            return Ending(kept=False, heard=f"{type(error).__name__}: {error}")
        return Ending(
            kept=f"{state} is a file where a folder should be; move it away" in held
            and f"Move {state} away" in doctor
            and bool(model),
            heard=f"{held} | {doctor}".replace(str(folder), ""),
        )


@attack(FILES, "the disk is full when state is written", deadline_s=4)
async def disk_full(probe: Probe) -> Ending:
    """A file may have 4 KiB from here on: what is kept stays whole, and a sentence says why."""
    with _folder() as folder:
        os.environ["CAAL_STATE"] = str(folder / "state")
        answers = InputAnswers(folder / "state" / "inputs.json")
        answers.keep("servers.json", {"key": "short"})
        before = answers.path.read_bytes()
        EvaluationStore().check()

        def write() -> list[str]:
            said: list[str] = []
            for work in (
                lambda: answers.keep("servers.json", {"key": "x" * 8_000}),
                lambda: EvaluationStore().change_profile("k", lambda _: "x" * 40_000),
            ):
                try:
                    work()
                except Exception as error:
                    said.append(f"{type(error).__name__}: {error}".replace(str(folder), ""))
            return said

        with _files_of(4096):
            said = await probe.watch(lambda: asyncio.to_thread(write))
        left = {path.name for path in (folder / "state").iterdir()}
        modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder / "state").iterdir()}
        whole = answers.path.read_bytes() == before and EvaluationStore().profile("k") is None
        private = modes <= {0o600} and stat.S_IMODE((folder / "state").stat().st_mode) == 0o700
    return Ending(
        kept=len(said) == 2
        and whole
        and private
        and left == {"inputs.json", "validations.db"}
        and "move it away" not in " ".join(said),
        heard=" | ".join([*said, f"whole: {whole}, private: {private}, left: {sorted(left)}"]),
    )


@contextmanager
def _files_of(max_bytes: int) -> Generator[None]:
    """Let the kernel refuse what would make a file longer, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
