"""`caal-node validate MODEL`: a model's tool calls are tried, reported and remembered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from caal_node.cli.chosen_agent import with_chosen_model
from caal_node.cli.output import console, print_table
from caal_node.config.instructions import instructions_of
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.evaluation.model_profiles import identify
from caal_node.evaluation.report import expectations, markdown, table
from caal_node.evaluation.result import Validation, to_object
from caal_node.evaluation.run import OnStep, ValidationSubject, run
from caal_node.evaluation.store import EvaluationStore
from caal_node.factories import make_llm
from caal_node.version import __version__


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
