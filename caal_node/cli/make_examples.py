"""`caal-node tools --make-examples`: examples for tools whose authors wrote none."""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.progress import track

from caal_node.cli.chosen_agent import chosen_agent
from caal_node.config.settings import Settings
from caal_node.core.errors import ModelReplyError
from caal_node.core.paths import state_folder
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.factories import make_llm
from caal_node.tools.example_maker import make_examples
from caal_node.tools.example_store import FILE_NAME, ExampleStore


async def make_missing(settings: Settings, agent_name: str | None) -> None:
    """Ask the model about each tool without examples, and keep what holds.

    Raises:
        ModelError: the model's server cannot be asked. What was made before that is kept.
    """
    console = Console(stderr=True)
    agent = chosen_agent(settings, agent_name)
    model = make_llm(settings)
    store = await asyncio.to_thread(ExampleStore, state_folder() / FILE_NAME)
    made: dict[str, tuple[ToolSpec, tuple[Example, ...]]] = {}
    try:
        await agent.reload_tools()
        shown = agent.examples()
        missing = [entry for entry in agent.table if not shown.get(entry.exposed)]
        for entry in track(missing, "Writing examples", console=console, transient=True):
            try:
                examples = await make_examples(model.backend, entry.schema)
            except ModelReplyError as error:
                console.print(f"{entry.exposed}: {error}", style="yellow", markup=False)
                continue
            if examples:
                made[entry.exposed] = entry.spec, examples
    finally:
        if made:
            await asyncio.to_thread(store.add, made)
        await model.aclose()
        await agent.close_tools()
    for name, (_, examples) in made.items():
        for example in examples:
            console.print(f"{name}: {example.utterance}", markup=False, highlight=False)
    left = len(missing) - len(made)
    console.print(f"{len(made)} tools have examples now, {left} still have none: {store.path}")
