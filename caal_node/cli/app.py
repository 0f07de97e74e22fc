"""`caal-node COMMAND`: the options and the help of each command.

To add a command, write its work as a function of a module of its own in this folder, and its
options as a function here: `doctor.py` and `doctor` below are good ones to imitate. The work takes
the settings and the options, prints, returns the exit code where it has one to give, and raises a
CaalError where something is wrong. A command imports its module only when it is run, since
`caal-node --help` must not load speech, numpy and LiveKit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from caal_node import __version__
from caal_node.cli import completion
from caal_node.cli.mcp_commands import mcp_app
from caal_node.cli.output import console as output_console
from caal_node.cli.output import help_style, log_to_stderr
from caal_node.core.errors import CaalError

if TYPE_CHECKING:
    from caal_node.config.settings import Settings

NAME: Final = "caal-node"
HELP: Final = frozenset({"-h", "--help"})
ENV_NAMES: Final = 6
"""Variables of a file that are named; what is more is counted."""

app = typer.Typer(
    **help_style(),
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # locals hold keys and people's words
)
_PASS_ON: Final[dict[str, Any]] = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="MODULE:CLASS", help="Your CaalAgent; default: CAAL_AGENT."),
]
Room = Annotated[str, typer.Option(metavar="NAME", help="As in this room.")]
Participant = Annotated[str, typer.Option(metavar="IDENTITY", help="As for this participant.")]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME=VALUE", help="One that the participant has."),
]
PagePort = Annotated[int, typer.Option(min=1, max=65_535)]
CertFile = Annotated[
    Path | None,
    typer.Option("--ssl-certfile", metavar="FILE", help="Serve https with this certificate (PEM)."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--ssl-keyfile", metavar="FILE", help="Its key, if it is in another file."),
]
OpenBrowser = Annotated[bool, typer.Option(help="Open the page where there is a desktop.")]
ControlApi = Annotated[
    str, typer.Option("--api", metavar="URL", help="The address of caal-node control.")
]
CONTROL_API: Final = "http://127.0.0.1:8889"
AsApi = Annotated[bool, typer.Option("--api", help="As for a request of the Tools API.")]


class _ToolsGroup(TyperGroup):
    """Says how a tool is shown where its name was typed for a command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            fix = (
                f"Did you mean {near[0]}?"
                if near
                else (
                    "To see all tools: caal-node tools; "
                    f"one tool: caal-node tools --explain {args[0]}"
                )
            )
            ctx.fail(f"No such command {args[0]!r}. {fix}")
        return super().resolve_command(ctx, args)


tools_app = typer.Typer(cls=_ToolsGroup, **help_style(), pretty_exceptions_show_locals=False)
policy_app = typer.Typer(
    help="Try the rules about tools in caal.toml.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
n8n_app = typer.Typer(
    help="Check workflows, and try one as the agent would.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.add_typer(tools_app, name="tools")
app.add_typer(n8n_app, name="n8n")
app.add_typer(mcp_app, name="mcp")
app.add_typer(policy_app, name="policy")


def main() -> None:
    """Run the command line. A known error is one line on stderr and exit code 1."""
    # A library's word about short LiveKit secrets, such as a development server's own; doctor
    # warns where one matters.
    warnings.filterwarnings("ignore", message="The HMAC key is ")
    try:
        app(prog_name=NAME)
    except CaalError as error:
        _say(str(error), style="red")
        sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")] = Path(),
) -> None:
    """Write the files that an agent of your own begins with; none is overwritten."""
    from caal_node.cli.new_files import write_examples

    write_examples(folder)


@app.callback()
def begin(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="The version, and nothing else.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Local LLMs that use tools by voice, in a LiveKit room.

    Variables of .env.local and .env in the working directory are read, in this order, below those
    that are set.
    """
    if HELP.isdisjoint(sys.argv):
        from caal_node.config.file import read_env_files  # it loads the settings

        context.obj = read_env_files(os.environ)


@app.command()
def chat(
    context: typer.Context,
    question: Annotated[
        str | None, typer.Argument(help="Answer this and end; without it, a conversation.")
    ] = None,
    as_json: Json = False,
    agent: AgentOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A name, or api:model@url; default: CAAL_MODEL.",
            autocompletion=completion.models,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show results, and log more.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Call no tool, and say what would have been done.")
    ] = False,
) -> None:
    """Talk to the agent by typing; a turn a line from stdin where that is no terminal."""
    from caal_node.cli.chat import is_told, run_chat
    from caal_node.cli.chosen_agent import agent_class, with_chosen_model
    from caal_node.cli.model_server import ready_settings

    if verbose:
        _say_what_files_set(context.obj)
        log_to_stderr(logging.INFO)
    else:
        log_to_stderr(logging.ERROR, leave_out=is_told)
    settings = _settings()
    if model is not None:
        settings = with_chosen_model(settings, model, "--model")
    if dry_run:
        settings = settings.with_given("--dry-run", {"dry_run": True})
    # One's own mistake is told before a missing server.
    agent_class(agent or settings.agent, "--agent" if agent else "CAAL_AGENT")
    settings = ready_settings(settings, agent)
    chat = partial(run_chat, as_json=as_json, question=question, results=verbose)
    raise typer.Exit(_run(lambda: chat(settings, agent)))


@app.command(context_settings=_PASS_ON)
def start(context: typer.Context) -> None:
    """Run the worker: it answers in every room that LiveKit gives it."""
    _worker("start", context.args)


@app.command(context_settings=_PASS_ON)
def dev(context: typer.Context) -> None:
    """Run the worker for development: it logs more, and takes a room on a busy machine too."""
    _worker("dev", context.args)


@app.command(context_settings=_PASS_ON)
def console(context: typer.Context) -> None:
    """Talk to the agent with this machine's microphone and speakers, without a room."""
    _worker("console", context.args)


@app.command()
def up(
    host: str = "127.0.0.1",
    port: PagePort = 8890,
    browser: OpenBrowser = True,
    certfile: CertFile = None,
    keyfile: KeyFile = None,
) -> None:
    """Talk to the agent in the browser: a LiveKit server, the worker and the page, until Ctrl-C."""
    log_to_stderr(logging.WARNING)
    from caal_node.cli.up import PageAddress, run_up

    run_up(PageAddress.of(host, port, certfile, keyfile), browser=browser)


@app.command()
def page(
    host: str = "127.0.0.1",
    port: PagePort = 8890,
    browser: OpenBrowser = True,
    certfile: CertFile = None,
    keyfile: KeyFile = None,
) -> None:
    """Serve the page alone, for a LiveKit server and a worker that run already."""
    log_to_stderr(logging.WARNING)
    from caal_node.cli.up import PageAddress, run_page

    run_page(PageAddress.of(host, port, certfile, keyfile), browser=browser)


@app.command()
def control(host: str = "127.0.0.1", port: int = 8889) -> None:
    """Serve the control API: reload tools, change models, call tools, say a sentence."""
    log_to_stderr(logging.INFO)
    from caal_node.control.app import serve

    serve(_settings(), host, port)


@app.command(name="reload")
def reload_room(
    room: Annotated[str | None, typer.Argument(help="Without it, every live room.")] = None,
    say: Annotated[str | None, typer.Option(help="What the agent says when it is done.")] = None,
    api: ControlApi = CONTROL_API,
) -> None:
    """Have a live room's agent list its tools again, by the control API."""
    from caal_node.cli.control_commands import reload_room as work

    settings = _settings()
    raise typer.Exit(_run(lambda: work(settings, api, room, say)))


@app.command(name="model")
def change_model(
    model: Annotated[str, typer.Argument(help="The model's name on its server.")],
    room: Annotated[str | None, typer.Argument(help="Needed if several rooms are live.")] = None,
    api: ControlApi = CONTROL_API,
) -> None:
    """Have a live room's agent ask another model, by the control API."""
    from caal_node.cli.control_commands import change_model as work

    settings = _settings()
    _run(lambda: work(settings, api, model, room))


@app.command()
def say(
    room: Annotated[str, typer.Argument(help="The room's name.")],
    text: Annotated[str, typer.Argument(help="The sentence, in quotes.")],
    priority: Annotated[
        str,
        typer.Option(help="low waits for a long pause, urgent interrupts the agent."),
    ] = "normal",
    ask: Annotated[bool, typer.Option("--ask", help="Print what the person answers.")] = False,
    api: ControlApi = CONTROL_API,
) -> None:
    """Have a live room's agent say a sentence as soon as nobody speaks, by the control API."""
    from caal_node.cli.control_commands import say as work

    settings = _settings()
    raise typer.Exit(_run(lambda: work(settings, api, room, text, priority=priority, ask=ask)))


@tools_app.callback(invoke_without_command=True)
def tools(
    context: typer.Context,
    as_json: Json = False,
    agent: AgentOption = None,
    make_examples: Annotated[bool, typer.Option("--make-examples", hidden=True)] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show one tool, and where each parameter came from.",
            autocompletion=completion.tools,
        ),
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="SERVER[__TOOL]",
            help="Show MCP tools that have changed or are held as new, and offer them from now on.",
        ),
    ] = None,
    policy: Annotated[
        bool, typer.Option("--policy", help="What may be called, and the line that says so.")
    ] = False,
    room: Room = "",
    participant: Participant = "",
    attribute: Attributes = None,
    api: AsApi = False,
) -> None:
    """List every tool of all three tiers, and the sources that could not be listed."""
    if make_examples:
        raise typer.BadParameter(
            "--make-examples was removed; write `Example: words -> {arguments}` lines in a tool's "
            "docstring or n8n notes, or [examples] in caal.toml for any tool"
        )
    if context.invoked_subcommand is not None:
        return
    log_to_stderr(logging.CRITICAL if policy else logging.ERROR)  # the output says what is wrong
    from caal_node.cli import tools as work

    if policy:
        from caal_node.cli.policy import AskedFor, show_policy

        asked = AskedFor(room, participant, attribute or (), api)
        _run(lambda: show_policy(_settings(), agent, asked, as_json=as_json))
        return
    if room or participant or attribute or api:
        raise typer.BadParameter("add --policy, which these belong to")
    if accept:
        _run(lambda: work.accept_changed_tools(accept))
        return
    if explain:
        _run(lambda: work.explain_tool(_settings(), agent, explain, as_json=as_json))
        return
    _run(lambda: work.list_tools(_settings(), agent, as_json=as_json))


@tools_app.command(name="add")
def add_tools(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="The toolsets; none lists all.",
            autocompletion=completion.toolsets,
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One of its options; may be repeated."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: what is not set keeps its default.")
    ] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Write it down even if it does not answer now.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Turn on built-in tools such as timers, lists or weather; without NAME, list them."""
    log_to_stderr(logging.ERROR)
    if names and as_json:
        raise typer.BadParameter("--json lists the toolsets; leave it or NAME out")
    if not names and (options or yes or unchecked):
        raise typer.BadParameter("name the toolset, such as: caal-node tools add lists --yes")
    if names and len(names) > 1 and options:
        raise typer.BadParameter("--set is for one toolset; add the others by themselves")
    from caal_node.cli import toolsets as work

    settings = _settings()
    if not names:
        work.list_toolsets(settings, as_json=as_json)
    for name in names or ():
        # As it is now: those that were added just before are in it.
        work.add_toolset(_settings(), name, options or [], ask=not yes, check=not unchecked)


@tools_app.command(name="remove")
def remove_tools(
    name: Annotated[str, typer.Argument(help="The toolset.", autocompletion=completion.toolsets)],
) -> None:
    """Turn a toolset off: its table in caal.toml goes, and the rest of the file stays."""
    from caal_node.cli.toolsets import remove_toolset

    remove_toolset(_settings(), name)


@tools_app.command(name="new")
def new_tools(
    name: Annotated[str, typer.Argument(help="Small letters and _, such as book_shelf.")],
    folder: Annotated[
        Path | None, typer.Argument(help="Where it goes; default: a folder of that name.")
    ] = None,
) -> None:
    """Write a toolset to begin with: a package with one tool and its test."""
    from caal_node.cli.new_files import write_toolset

    write_toolset(name, folder or Path(name))


@app.command()
def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check everything that is configured, and say how to fix what is wrong."""
    _say_what_files_set(context.obj)
    log_to_stderr(logging.ERROR)
    from caal_node.cli.doctor import run_doctor

    raise typer.Exit(_run(lambda: run_doctor(_settings(), as_json=as_json)))


@app.command()
def health() -> None:
    """Say whether this machine's worker can take rooms; the exit code is 1 if it cannot.

    It asks the process that `caal-node start` runs, and the LiveKit server with the worker's keys.
    """
    log_to_stderr(logging.ERROR)
    from caal_node.cli.health import run_health

    raise typer.Exit(_run(lambda: run_health(_settings())))


@app.command()
def schema() -> None:
    """Print the JSON schema of caal.toml, for editors, with all toolsets that are installed."""
    from caal_node.cli.schema import print_schema

    print_schema()


@app.command()
def trace(
    file: Annotated[
        Path | None,
        typer.Argument(help="What CAAL_TRACE wrote; by default, its file."),
    ] = None,
    turn: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="This turn only, counted from 1; may be repeated."),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Picture to write as well.")] = None,
    png: Annotated[Path | None, typer.Option(hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Show what each turn's time was spent on, from the end of speech to the last word."""
    if png is not None:
        raise typer.BadParameter("--png was removed; write --svg FILE")
    from caal_node.cli.trace_pictures import show_trace

    if file is None and (trace := _settings().trace) is not None:
        file = trace.file
    show_trace(file, turn or (), svg, as_json=as_json)


@app.command()
def validate(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A name, or api:model@url; default: CAAL_MODEL.", autocompletion=completion.models
        ),
    ] = None,
    full_suite: Annotated[bool, typer.Option("--full-suite", help="Twice as many cases.")] = False,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help="Markdown file to write as well.")] = None,
) -> None:
    """Try how well a model uses tools, and remember it."""
    log_to_stderr(logging.ERROR)
    from caal_node.cli.validate import run_validate

    raise typer.Exit(
        _run(
            lambda: run_validate(
                _settings(), model, full=full_suite, as_json=as_json, report=report
            )
        )
    )


@app.command()
def login(
    server: Annotated[
        str,
        typer.Argument(help="Its name in mcp_servers.json.", autocompletion=completion.servers),
    ],
    browser: Annotated[bool, typer.Option(help="Open the page in this machine's browser.")] = True,
    forget: Annotated[bool, typer.Option("--forget", help="Forget the sign-in instead.")] = False,
) -> None:
    """Sign in to an MCP server (OAuth), once for all rooms to come."""
    log_to_stderr(logging.ERROR)
    from caal_node.cli import login as work

    if forget:
        _run(lambda: work.logout(_settings(), server))
    else:
        _run(lambda: work.login(_settings(), server, browser=browser))


@app.command(name="download-files")
def download_files() -> None:
    """Fetch the weights that the settings need, as for a Docker image."""
    from caal_node.weights.gguf import fetch_needed

    fetch_needed(_settings())


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for demo.wav and demo.jsonl.")] = Path(),
    room: Annotated[bool, typer.Option(help="Use a real LiveKit room if one can be had.")] = True,
) -> None:
    """Show the main job, with everything it needs: a room, a model, tools, speech and cues."""
    log_to_stderr(logging.ERROR)
    from caal_node.cli.demo.app import run_demo

    _run(lambda: run_demo(out, use_room=room))


@policy_app.callback()
def policy() -> None:
    """Try the rules about tools in caal.toml."""
    log_to_stderr(logging.CRITICAL)  # what is wrong is said in the output


@policy_app.command(name="try")
def try_policy(
    name: Annotated[
        str,
        typer.Argument(
            help="The tool, as `caal-node tools` lists it.", autocompletion=completion.tools
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE...", help="The call's arguments; or one JSON object."),
    ] = None,
    agent: AgentOption = None,
    room: Room = "",
    participant: Participant = "",
    attribute: Attributes = None,
    api: AsApi = False,
    as_json: Json = False,
) -> None:
    """Say what the rules would do with a call, without running it.

    Exit code 1 where it would be refused.
    """
    from caal_node.cli.policy import AskedFor, try_call

    asked = AskedFor(room, participant, attribute or (), api)
    may_run = _run(
        lambda: try_call(_settings(), agent, name, arguments or [], asked, as_json=as_json)
    )
    raise typer.Exit(0 if may_run else 1)


@n8n_app.callback()
def n8n() -> None:
    """Check workflows, and try one as the agent would."""
    log_to_stderr(logging.ERROR)  # what is wrong is said in the output


@n8n_app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Workflows that n8n exported.")
    ] = None,
    instance: Annotated[
        bool, typer.Option("--instance", help="Every active workflow at N8N_URL.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what keeps workflows from being good voice tools, and how to fix it.

    Exit code 1 where a workflow cannot be called, or will be called wrongly.
    """
    from caal_node.cli.n8n_check import check_files, check_instance

    if instance == bool(files):
        raise typer.BadParameter("name files, or write --instance")
    if instance:
        passed = _run(lambda: check_instance(_settings(), as_json=as_json))
    else:
        passed = check_files(files or [], as_json=as_json)
    raise typer.Exit(0 if passed else 1)


@n8n_app.command(name="try")
def try_(
    name: Annotated[
        str,
        typer.Argument(
            help="The tool, as `caal-node tools` lists it.", autocompletion=completion.tools
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE...", help="The call's arguments; or one JSON object."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a workflow as the agent would; show what the model and the person get.

    It is a real run. Exit code 1 where it failed.
    """
    from caal_node.cli.n8n_try import try_workflow

    worked = _run(lambda: try_workflow(_settings(), name, arguments or [], as_json=as_json))
    raise typer.Exit(0 if worked else 1)


def _say_what_files_set(files: Mapping[Path, tuple[str, ...]]) -> None:
    for path, names in files.items():
        more = f" and {len(names) - ENV_NAMES} more" if len(names) > ENV_NAMES else ""
        _say(f"{path} sets {', '.join(names[:ENV_NAMES])}{more}", style="dim")


def _say(words: str, *, style: str) -> None:
    output_console(stderr=True).print(f"{NAME}: {words}", style=style, markup=False, emoji=False)


def _worker(command: str, arguments: list[str]) -> None:
    from caal_node.cli.worker import run_worker

    run_worker(command, ["--help" if each == "-h" else each for each in arguments])


def _settings() -> Settings:
    # The settings take 0.4 s, which help and completion need not wait for.
    from caal_node.config.process_guard import guard_process

    return guard_process()


def _run(work: Callable[[], Any]) -> Any:
    try:
        return asyncio.run(work())
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
