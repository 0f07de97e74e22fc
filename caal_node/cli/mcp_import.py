"""Finds the MCP servers of other programs on this machine, shows them and copies what is chosen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import typer
from rich.console import Console

from caal_node.config.mcp_file import input_answers, load_mcp_servers
from caal_node.core.errors import ConfigError
from mcp_bridge.config.import_servers import (
    add_servers,
    entry_to_copy,
    read_found,
    what_it_starts,
)
from mcp_bridge.config.servers_file import FoundEntry, load_servers
from mcp_bridge.config.spellings import KnownFile, known_files
from mcp_bridge.core import errors as bridge_errors
from mcp_bridge.core.server_config import AskedInput

_STARTS_CHARS: Final = 100
"""A line has room for this much of a command."""


@dataclass(frozen=True)
class _Offer:
    """One server that could be copied."""

    file: KnownFile
    found: FoundEntry
    hindrance: str
    """Why it cannot be copied; empty where it can."""

    @property
    def name(self) -> str:
        return self.found.config.name

    @property
    def remark(self) -> str:
        """What its user should know before they copy it."""
        config = self.found.config
        if self.hindrance:
            return self.hindrance
        if config.asks:
            return f"asks for: {', '.join(asked.description for asked in config.asks)}"
        if config.fault:
            return config.fault.removeprefix(str(self.file.path)).partition(": ")[2]
        return "" if config.enabled else f"off: {config.off_because}"


def import_servers(
    target: Path,
    sources: Sequence[str],
    servers: Sequence[str],
    *,
    copy_all: bool,
    dry_run: bool,
) -> None:
    """Show the servers of other programs, and copy those that are chosen, all of them or none.

    Args:
        target: The file to copy to, which need not be there.
        sources: Names of programs, and paths of files; where it is empty, every known place.
        servers: Names of servers to copy. Without them, and without `copy_all`, a person at the
            terminal is asked.

    Raises:
        ConfigError: a source, a server or the file to copy to is not as it should be.
    """
    console = Console(highlight=False, soft_wrap=True)
    offers = list(_offers(_files(sources), target, console))
    if not offers:
        elsewhere = "To read another file, run: caal-node mcp import FILE"
        console.print(f"No servers of other programs were found. {elsewhere}")
        return
    _show(offers, console)
    chosen = _chosen(offers, servers, copy_all=copy_all, dry_run=dry_run)
    if not chosen:
        can = any(not offer.hindrance for offer in offers) and not copy_all
        hint = " Choose with --server NAME, or copy them with --all." if can else ""
        console.print(f"Nothing was copied.{hint}")
        return
    names = ", ".join(chosen)
    if dry_run:
        console.print(f"These would be copied into {target}: {names}", markup=False)
        return
    try:
        add_servers(target, {name: entry_to_copy(each.found) for name, each in chosen.items()})
    except bridge_errors.ConfigError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"{target} cannot be written ({error.strerror}); fix that") from None
    console.print(f"Copied into {target}, which only you can read: {names}", markup=False)
    if any(offer.found.config.asks for offer in chosen.values()):
        if _at_terminal():
            answer_inputs(target)
        else:
            console.print("Some ask for values: run `caal-node mcp inputs` at a terminal.")


def answer_inputs(file: Path, *, again: bool = False) -> None:
    """Ask for every value that the servers of `file` want and nobody has given yet, and keep it.

    Raises:
        ConfigError: the file cannot be read, nobody is at the terminal, or the answers cannot be
            kept.
    """
    try:
        servers = load_servers(file) if again else load_mcp_servers(file)
    except bridge_errors.ConfigError as error:
        raise ConfigError(str(error)) from None
    asked = {one.id: one for server in servers if server.enabled for one in server.asks}
    if not asked:
        typer.echo(f"The servers of {file} wait for no answer.")
        return
    if not _at_terminal():
        raise ConfigError("answers are typed in; run this at a terminal")
    answers = {name: _ask(one) for name, one in asked.items()}
    kept = input_answers()
    try:
        kept.keep(file, answers)
    except OSError as error:
        raise ConfigError(f"{kept.path} cannot be written ({error.strerror}); fix that") from None
    typer.echo(f"Kept in {kept.path}, which only you can read.")


def _ask(asked: AskedInput) -> str:
    """Ask until the answer is one of those that may be given."""
    words = asked.description + (f" ({', '.join(asked.options)})" if asked.options else "")
    while True:
        answer: str = typer.prompt(
            words,
            default=asked.default or None,
            hide_input=asked.secret,
            show_default=not asked.secret,
        )
        if not asked.options or answer in asked.options:
            return answer


def _files(sources: Sequence[str]) -> tuple[KnownFile, ...]:
    """Return the files to look into.

    Raises:
        ConfigError: a source is neither a program that is known nor a file.
    """
    known = known_files(Path.home(), Path.cwd(), os.environ, sys.platform)
    if not sources:
        return known
    programs = {file.program for file in known}
    found: list[KnownFile] = []
    for source in sources:
        path = Path(source).expanduser()
        if source in programs:
            found += [file for file in known if file.program == source]
        elif path.is_file():
            found.append(KnownFile(path.parent.name or "file", path.absolute()))
        else:
            raise ConfigError(
                f"{source!r} is neither a file nor a known program; "
                f"write a path, or one of {', '.join(sorted(programs))}"
            )
    return tuple(found)


def _offers(files: Sequence[KnownFile], target: Path, console: Console) -> Iterator[_Offer]:
    """Yield each server of each file that is there, and why it cannot be copied if it cannot."""
    try:
        taken = {config.name for config in load_servers(target, missing_ok=True)}
    except bridge_errors.ConfigError as error:
        raise ConfigError(str(error)) from None
    seen: dict[str, FoundEntry] = {}
    for file in files:
        if file.path.resolve() == target.resolve():
            continue
        try:
            entries = read_found(file.path)
        except FileNotFoundError:
            continue
        except bridge_errors.ConfigError as error:
            console.print(f"left out: {error}", style="yellow", markup=False)
            continue
        for found in entries:
            name, hindrance = found.config.name, ""
            if name in taken:
                hindrance = "there already"
            elif (other := seen.get(name)) is not None:
                same = other.entry == found.entry
                hindrance = "the same as above" if same else "its name is taken above"
            seen.setdefault(name, found)
            yield _Offer(file, found, hindrance)


def _show(offers: Sequence[_Offer], console: Console) -> None:
    """Print the servers, file by file, each with a number to choose it by."""
    width = max(len(offer.name) for offer in offers)
    last: KnownFile | None = None
    numbers = count(1)
    for offer in offers:
        if offer.file != last:
            place = str(offer.file.path).replace(str(Path.home()), "~", 1)
            console.print(f"{offer.file.program}: {place}", style="bold", markup=False)
            last = offer.file
        label = "-" if offer.hindrance else str(next(numbers))
        starts = what_it_starts(offer.found.entry)[:_STARTS_CHARS]
        console.print(f"{label:>4}  {offer.name:<{width}}  {starts}", markup=False)
        if offer.remark:
            console.print(f"{'':{width + 8}}{offer.remark}", style="dim", markup=False)


def _chosen(
    offers: Sequence[_Offer], servers: Sequence[str], *, copy_all: bool, dry_run: bool
) -> dict[str, _Offer]:
    """Return what to copy, by name.

    Raises:
        ConfigError: a server that was named cannot be copied.
    """
    free = {offer.name: offer for offer in offers if not offer.hindrance}
    if copy_all or (dry_run and not servers):
        return free
    if not servers:
        return _asked_for(offers) if free and _at_terminal() else {}
    for name in servers:
        if name not in free:
            why = next((offer.hindrance for offer in offers if offer.name == name), "not found")
            raise ConfigError(f"{name!r} cannot be copied: {why}")
    return {name: free[name] for name in servers}


def _asked_for(offers: Sequence[_Offer]) -> dict[str, _Offer]:
    """Ask which servers to copy, and again where the answer names none of them."""
    free = [offer for offer in offers if not offer.hindrance]
    by_word = {str(number): offer for number, offer in enumerate(free, 1)}
    by_word |= {offer.name: offer for offer in (*offers, *free)}
    question = "Copy which? Numbers or names, or all; Enter for none"
    while True:
        answer: str = typer.prompt(question, default="", show_default=False)
        words = answer.replace(",", " ").split()
        if words == ["all"]:
            return {offer.name: offer for offer in free}
        if unknown := [word for word in words if word not in by_word]:
            typer.echo(f"{unknown[0]!r} is none of them. Try again.")
            continue
        picked = {by_word[word].name: by_word[word] for word in words}
        if not (hindered := [offer for offer in picked.values() if offer.hindrance]):
            return picked
        typer.echo(f"{hindered[0].name!r} cannot be copied: {hindered[0].hindrance}. Try again.")


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
