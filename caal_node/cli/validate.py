"""`caal-node validate MODEL`: a model's tool calls are tried, reported and remembered.

The report is a table for the terminal, or Markdown for a file.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from caal_node import __version__
from caal_node.cli.chosen_agent import with_chosen_model
from caal_node.cli.output import console, print_table
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.evaluation.model_profiles import identify
from caal_node.evaluation.run import OnStep, ValidationSubject, run
from caal_node.evaluation.store import EvaluationStore, Outcome, Tally, Validation, to_object
from caal_node.evaluation.suites import SUITES, WAY_NAMES, WAYS, Asking, SuiteName
from caal_node.factories import make_llm
from caal_node.prompt_builder import instructions_of

# The report: what to expect of the model in a spoken conversation, and the figures.
#
# The sentences are about the way in which it will be asked. A suite's figures say how often; the
# sentence says what that is to somebody who speaks, and what they can do about it.

SLOW_S: Final = 4.0
"""Seconds to a reply from which on people find a conversation slow (research on voice assistants
puts it there)."""

_SAID: Final[Mapping[SuiteName, tuple[str, str]]] = {
    "tool_call": (
        "One request at a time is done",
        "Requests have to be said again: plain ones were not all understood",
    ),
    "two_calls": (
        "Two requests in one breath are done",
        "Say one thing at a time: of two requests in one breath, one is often left out",
    ),
    "abstention": (
        "Small talk and questions call no tool",
        "It may do things that nobody asked for, as small talk called tools: have calls that "
        "matter confirmed",
    ),
    "argument_types": (
        "Numbers, lists and names arrive as they were said",
        "Details get lost: numbers, lists or names did not all arrive as they were said",
    ),
    "tool_result": (
        "What a tool found is said as it is",
        "What a tool found is not always said: ask again",
    ),
    "dialogue": (
        "What was said before can be referred to, also after an interruption",
        "Say names and numbers in full each time: what was said before is not always meant",
    ),
    "reasoning": (
        "It can be asked for small sums and conclusions",
        "Do not rely on its sums and conclusions",
    ),
}


def expectations(validation: Validation) -> Iterator[str]:
    """Yield a sentence for each ability that was tried, then what is to be known of its speed and
    of its server."""
    way = validation.asking
    for suite, (good, poor) in _SAID.items():
        tally = validation.tally(suite, way)
        if tally.total:
            yield f"{good if tally.passed else poor} ({tally.right} of {tally.total} right)."
    seconds = sorted(o.seconds for o in validation.outcomes if o.asking == way)
    if seconds:
        middle, slowest = median(seconds), seconds[-1]
        felt = "it feels slow" if middle >= SLOW_S else "it feels prompt"
        yield f"A reply took {middle:.1f} s, the slowest {slowest:.1f} s, on this server: {felt}."
    if behind := [o for o in validation.outcomes if o.behind_call]:
        words = f"Words stood behind a call in {len(behind)} replies, and are not heard."
        if validation.api == "openai":
            words += " If this server runs tools by itself, set CAAL_TOOL_CALLS=server."
        yield words


_HEX: Final = re.compile(r"[0-9a-f]{32,}")
DIGEST_CHARS: Final = 12
"""Characters of a digest, as `ollama list` shows them."""
TERMINAL_FAULTS: Final = 12
FILE_FAULTS: Final = 200
"""Lines about faults. `--json` has every case."""


def table(validation: Validation) -> Group:
    """Lay out the counts of every suite in both ways, then the faults, what to expect by voice, and
    the conclusion."""
    counts = Table("suite", "what it tries", header_style="bold", show_edge=False)
    for way in WAYS:
        counts.add_column(way, justify="right")
    for name, about, cells in _rows(validation):
        styled = (Text(str(t), style=_style(t)) for t in cells)
        counts.add_row(name, Text(about), *styled)
    counts.add_section()
    for name, cells in _figures(validation):
        counts.add_row(name, "", *cells)
    faults = [Text(line, style="dim") for line in _faults(validation, TERMINAL_FAULTS)]
    color = "green" if validation.passed else "bold red"
    # They are Text, since brackets in a model's words are no markup.
    return Group(
        Text(heading(validation)),
        Text(),
        counts,
        Text(),
        *faults,
        *([Text()] if faults else []),
        Text("By voice:"),
        *(Text(f"  {line}") for line in expectations(validation)),
        Text(),
        Text(conclusion(validation), style=color),
    )


def markdown(validation: Validation) -> str:
    """Write the same as a Markdown document."""
    lines = [
        f"# {validation.model}",
        "",
        heading(validation),
        "",
        f"**{conclusion(validation)}**",
        "",
        f"| suite | what it tries | {' | '.join(WAYS)} |",
        f"| --- | --- |{' ---: |' * len(WAYS)}",
        *(
            f"| {name} | {about} | {' | '.join(map(str, cells))} |"
            for name, about, cells in _rows(validation)
        ),
        *(f"| {name} | | {' | '.join(cells)} |" for name, cells in _figures(validation)),
    ]
    lines += ["", "What to expect by voice:", ""]
    lines += [f"- {line}" for line in expectations(validation)]
    if faults := list(_faults(validation, FILE_FAULTS)):
        lines += ["", "What was not right:", "", *(f"- {_escaped(line)}" for line in faults)]
    return "\n".join(lines) + "\n"


def heading(validation: Validation) -> str:
    """Name model, server and time in one line."""
    identity = validation.identity
    server = f"{identity.server} {identity.version}".strip()
    hashed = identity.digest.removeprefix("sha256:")
    digest = hashed[:DIGEST_CHARS] if _HEX.fullmatch(hashed) else hashed
    suite = "full suite" if validation.full else "short suite"
    return (
        f"{validation.model} ({digest}) on {server} at {validation.address}, "
        f"{validation.at}, caal-node {validation.node_version}, {suite}"
    )


def conclusion(validation: Validation) -> str:
    """Say whether the model is fit for tools, and how it will be asked."""
    way = WAY_NAMES[validation.asking]
    if validation.passed:
        return f"Validated. It will be asked by {way}."
    missed = ", ".join(name.replace("_", " ") for name in validation.missed(validation.asking))
    return f"Not validated. Its better way, {way}, did not pass: {missed}."


def _rows(validation: Validation) -> Iterator[tuple[str, str, list[Tally]]]:
    for suite in SUITES:
        name = suite.name.replace("_", " ")
        about = suite.about if suite.required else f"{suite.about} (not required)"
        yield name, about, [validation.tally(suite.name, way) for way in WAYS]


def _figures(validation: Validation) -> Iterator[tuple[str, list[str]]]:
    yield "compared", [str(validation.total(way)) for way in WAYS]
    yield "seconds", [_figure(validation, way, validation.seconds(way)) for way in WAYS]
    tokens = [_figure(validation, way, validation.prompt_tokens(way)) for way in WAYS]
    yield "prompt tokens", tokens


def _figure(validation: Validation, asking: Asking, value: float) -> str:
    if not validation.total(asking).total:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def _faults(validation: Validation, most: int) -> Iterator[str]:
    wrong = [outcome for outcome in validation.outcomes if outcome.mark != "right"]
    for outcome in wrong[:most]:
        yield _fault(outcome)
    if len(wrong) > most:
        yield f"and {len(wrong) - most} more; --report and --json have them"
    if not validation.native_offered:
        yield "the server says that this model has no tool calls, so they were not tried"


def _fault(outcome: Outcome) -> str:
    suite = outcome.suite.replace("_", " ")
    return f"{outcome.asking}, {suite}: “{outcome.case}” {outcome.mark}: {outcome.fault}"


def _escaped(line: str) -> str:
    for char in "\\`*_<>|[]":
        line = line.replace(char, f"\\{char}")
    return line


def _style(tally: Tally) -> str:
    return "" if not tally.total else "green" if tally.passed else "red"


# The command.


async def run_validate(
    settings: Settings,
    model: str | None = None,
    *,
    full: bool = False,
    as_json: bool = False,
    report: Path | None = None,
    store: EvaluationStore | None = None,
) -> int:
    """Print the report; the exit code is 1 where the model does not pass, else 0.

    `model` None is the settings' own.

    Raises:
        ConfigError: MODEL cannot be read, or the store or the report's file cannot be written.
        ModelError: the server cannot be asked; nothing is stored then.
    """
    if model is not None:
        settings = with_chosen_model(settings, model, "MODEL")
    store = store or EvaluationStore()
    await asyncio.to_thread(store.check)  # before minutes are spent, not after
    with _progress() as on_step:
        found = await validate(settings, full=full, on_step=on_step)
    if as_json:
        shown = {**to_object(found), "by_voice": [*expectations(found)]}
        print(json.dumps(shown, ensure_ascii=False))
    else:
        print_table(console(), table(found))
    try:
        await asyncio.to_thread(store.add, found)
    finally:  # minutes went into it, so one that cannot be written does not cost the other
        if report is not None:
            await asyncio.to_thread(_write, report, markdown(found))
    return 0 if found.passed else 1


async def validate(settings: Settings, *, full: bool, on_step: OnStep) -> Validation:
    """Try the settings' model on its server.

    Raises:
        ConfigError: an address, a key or the instructions cannot be used.
        ModelError: the server cannot be asked, or has no such model.
    """
    identity = await identify(settings)
    system = await asyncio.to_thread(instructions_of, settings)
    async with AsyncExitStack() as stack:
        model = make_llm(settings)
        stack.push_async_callback(model.aclose)
        can = await model.backend.capabilities()
        thinking = model
        if can.thinking and settings.api == "ollama":
            thinking = make_llm(settings.model_copy(update={"think": True}))
            stack.push_async_callback(thinking.aclose)
        offered = can.tools is not False
        subject = ValidationSubject(model.backend, thinking.backend, system, offered)
        outcomes = await run(subject, full=full, on_step=on_step)
    return Validation(
        model=settings.model,
        api=settings.api,
        address=settings.model_address,
        identity=identity,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        full=full,
        node_version=__version__,
        native_offered=offered,
        outcomes=outcomes,
        think=settings.think,
    )


@contextmanager
def _progress() -> Generator[OnStep]:
    """A bar on standard error, so that standard output holds the report alone."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    out = console(stderr=True)
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("looking at the server", total=None)

        def on_step(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield on_step


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"--report {path}: cannot be written ({error.strerror}); name another file"
        ) from error
