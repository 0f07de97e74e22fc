"""The launchers that are known, each with the arguments that bring no code of their own.

They are from manual pages and `--help`, and few on purpose: what servers' pages tell people to
write. An option that is missing here asks for the owner's word; none that is here may bring code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final

# Reads a launcher's arguments up to the server that they name.
#
# Options are those that the launcher is known to take and that cannot bring code. At any other the
# reading stops: whether the next word is its value, and what it does, nobody here knows.

PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for name, pattern in {
        # Not what looks like an option: two readings of it would differ.
        "": r"(?!-).*",
        "folder": r"(?!-).*",  # where what it names is looked for
        "word": r"\w[\w.+-]*",
        # By its name, by a folder, or by an address where nobody changes it on the way.
        "package": r"(?!-)(?:(?:https|git\+https|git\+ssh|npm|jsr|github|gitlab|bitbucket):"
        r"[^\s;&|$`\"'()]+|[^:\s;&|$`\"'()]+)|[A-Za-z]:[\\/].*",
        "npmjs": r"https://registry\.npmjs\.org/?",
        "pypi": r"https://pypi\.org/simple/?",
        "nuget": r"https://api\.nuget\.org/v3/index\.json",
        "python": r"(?:c?python|pypy)?[-@]?[23](?:\.\d+){0,2}t?",
        # A category with a dot in it is a module that Python loads.
        "warning": r"(?:ignore|default|error|always|module|once)(?:::[A-Za-z]+)?",
        "switch": r"utf8(?:=[01])?|dev|faulthandler|importtime|no_debug_ranges",
        "loader": r"tsx|tsx/esm|tsx/cjs|ts-node/esm|ts-node/register|dotenv/config",
        "unprivileged": r"no-new-privileges(?:[:=]true)?",
        "mount": r"(?:MOUNT|[a-z]:[\\/]+(?!Windows|Program)[^\\/:]+[\\/]+[^\\/:][^:]*)(?::.*)?",
        "long mount": r"(?:type=(?:bind|volume|tmpfs),)?(?:(?:src|source)=MOUNT,)?"
        r"(?:dst|target|destination)=[^,]+(?:,(?:ro|readonly))?",
    }.items()
    for pattern in [
        pattern.replace(
            "MOUNT",
            # A volume, or a folder that is neither the system's nor all of somebody's home.
            r"(?![.\\]|[a-z]:)(?!/+(?:(?:home|root|Users)/*)?(?:[:,]|$))"
            r"(?!.*/\.{1,2}(?:[/:,]|$))(?!.*\.sock\b)(?!/+(?:bin|boot|dev|etc|lib\w*|private|proc|run|sbin|sys|usr|var"
            r"|System)(?:[/:,]|$))[^,:]+",
        )
    ]
}
"""What the value of an option may be."""
_OPTION: Final = re.compile(r"(?P<name>[^=\[]+)(?P<how>=>|=\+|\[=\]|=)?(?P<what>.*)")


@dataclass(frozen=True)
class Launcher:
    """What one program is known to take before the server's own arguments."""

    starts: str
    """What it is told to start: a script, a module, a package, a command, ..."""
    options: str = ""
    """Those that are known: `-u` without a value, `-e=` with any, `-p=python` with one of that
    pattern, `--allow-net[=]` with none but in the same word, `-m=>module` with what is started,
    `--from=+command` with a package, whereupon the first other word is a command."""
    shapes: str = r"(?!)"
    """The pattern of further words that are options."""
    words: Mapping[str, Launcher] = field(default_factory=dict[str, "Launcher"])
    """Subcommands, each with arguments of its own."""
    optional: bool = False
    """Whether nothing need be named."""
    mixed: bool = False
    """Whether its options may also stand behind what is named, up to a `--`."""

    @cached_property
    def known(self) -> Mapping[str, tuple[str, str]]:
        """Each option with how it takes its value, and what the value is."""
        found = [_OPTION.fullmatch(word) for word in self.options.split()]
        return {
            one["name"]: (one["how"] or "", one["what"].replace("_", " ")) for one in found if one
        }


@dataclass(frozen=True, slots=True)
class Named:
    """What a launcher is told to start, and the words that are left for it."""

    starts: str
    what: str
    rest: tuple[str, ...] = ()
    folder: str = ""
    """Where the launcher goes before it looks for that; empty where it stays."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The word at which the reading stopped; empty where nothing was named at all."""

    word: str


def read(launcher: Launcher, words: Sequence[str], folder: str = "") -> Named | Unknown:
    """Reads what `launcher` is told by `words`."""
    starts, named, at = launcher.starts, "", 0
    others: list[str] = []
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            if not named and not launcher.optional:
                named, at = "".join(words[at : at + 1]), at + 1
            break
        if word == "-" or not word.startswith("-"):
            if not named and word in launcher.words:
                return read(launcher.words[word], words[at:], folder)
            if not word or (launcher.mixed and word.startswith("@") and "/" not in word):
                return Unknown(word or "''")  # `@x` is a file of further options
            if named:
                others.append(word)
            named = named or word
            if launcher.mixed:
                continue
            break
        option, value = _option(launcher, word)
        if option is None:
            return Unknown(word)
        how, what = launcher.known.get(option, ("", ""))
        if how in ("", "[=]"):
            continue
        if value is None:
            value, at = "".join(words[at : at + 1]), at + 1
        if not PATTERNS["package" if how == "=+" else "" if how == "=>" else what].fullmatch(value):
            return Unknown(f"{option} {value}")
        if how == "=>":
            return Named(what, value, tuple(words[at:]), folder) if value else Unknown("")
        folder = value if what == "folder" else folder
        starts = what if how == "=+" else starts
    if not named and not launcher.optional:
        return Unknown("")
    return Named(starts, named, (*others, *words[at:]), folder)


def _option(launcher: Launcher, word: str) -> tuple[str | None, str | None]:
    """Gives the option that `word` is, if it is known, and the value in it, if there is one."""
    name, equals, value = word.partition("=")
    how = launcher.known.get(name, ("?", ""))[0]
    if re.fullmatch(launcher.shapes, word) or (how == "" and not equals) or how == "[=]":
        return name, None
    if how != "?" and how:
        return name, value if equals else None
    if not word.startswith("--"):  # single letters stand together: `-it`, `-uW ignore`, `-v/x:/y`
        for place, letter in enumerate(word[1:], 2):
            option = f"-{letter}"
            how = launcher.known.get(option, ("?", ""))[0]
            if how == "?" or how == "[=]":
                return None, None
            if how:
                return option, word[place:].removeprefix("=") or None
        return "-", None
    return None, None


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _words(options: str = "", **words: Launcher) -> Launcher:
    """A launcher that needs one of its subcommands."""
    return Launcher("nothing", options, words=words)


_SCRIPT: Final = Launcher("script")
_COMMAND: Final = Launcher("command")
_PYTHON: Final = Launcher(
    "script",
    "-b -B -d -E -I -O -OO -P -q -s -S -u -v -W=warning -X=switch -m=>module",
    shapes=r"-[23](?:\.\d+)?(?:-(?:32|64))?",  # of Windows' `py`
)
_NODE_OPTIONS: Final = (
    "--enable-source-maps --expose-gc --preserve-symlinks --watch --use-system-ca "
    "--experimental-strip-types --experimental-transform-types --experimental-vm-modules "
    "--experimental-sqlite --experimental-fetch --experimental-json-modules --trace-warnings "
    "--trace-deprecation --trace-uncaught --throw-deprecation -C=word --conditions=word "
    "--dns-result-order=word --unhandled-rejections=word --disable-warning=word "
    "-r=loader --require=loader --import=loader --loader=loader"
)
_NODE: Final = Launcher(
    "script",
    _NODE_OPTIONS,
    shapes=r"--no-[a-z-]+|--(?:max-old-space-size|stack-size|max-http-header-size)=\d+",
    words=dict.fromkeys(("inspect", "debug"), Launcher("nothing")),
)
_TSX: Final = replace(
    _NODE,
    options=f"{_NODE_OPTIONS} -T --transpile-only --esm --swc --files --tsconfig= -P= --project=",
    words={**_NODE.words, "watch": _SCRIPT},
)
_NPX: Final = Launcher(
    "package",
    "-y --yes -q --quiet -s --silent --no-install --prefer-offline --prefer-online --offline "
    "--ignore-existing --registry=npmjs -p=+command --package=+command",
)
_TASK: Final = Launcher("anything", "-s --silent --prefix=folder --cwd=folder", optional=True)
_NPM_TASK: Final = replace(_TASK, mixed=True)
_NPM: Final = _words(
    "-s --silent --prefix=folder",
    **dict.fromkeys(("exec", "x"), replace(_NPX, mixed=True)),
    **dict.fromkeys(("run", "run-script", "start"), _NPM_TASK),
)
_DLX: Final = Launcher("package", "-q --quiet -p=+command --package=+command")
_NODE_PACKAGES: Final = _words(
    "-s --silent -C=folder --dir=folder --cwd=folder -F= --filter=",
    dlx=_DLX,
    exec=_COMMAND,
    run=Launcher("command", "-s --silent"),
    start=_TASK,
)
_BUN_OPTIONS: Final = "--bun -b --silent --watch --hot --smol --cwd=folder"
_BUNX: Final = Launcher("package", "--bun -y --silent --verbose -p=+command --package=+command")
_DENO_RUN: Final = Launcher(
    "script or address",
    "-A --allow-all -q --quiet --no-prompt --no-lock --cached-only --no-npm --no-remote "
    "--no-config --watch -c= --config= --port= -N[=] --allow-net[=] -R[=] --allow-read[=] "
    "-W[=] --allow-write[=] -E[=] --allow-env[=] -S[=] --allow-sys[=] --allow-run[=] "
    "--allow-ffi[=] --allow-import[=] --node-modules-dir[=] --no-check[=] -r[=] --reload[=]",
    shapes=r"--unstable(?:-[a-z-]+)?|--deny-[a-z]+(?:=.*)?",
)
_UV_OPTIONS: Final = (
    "-q --quiet -v --verbose --offline --no-progress --native-tls --system-certs -n --no-cache "
    "--no-config --directory=folder --project="
)
_UV_PACKAGES: Final = (
    f"{_UV_OPTIONS} --refresh --isolated --no-env-file --managed-python -w=package "
    "--with=package --with-editable=package --with-requirements=package -p=python --python=python "
    "--index-url=pypi --default-index=pypi --prerelease=word --link-mode=word --exclude-newer= "
    "--color=word"
)
_UVX: Final = Launcher("package", f"{_UV_PACKAGES} --from=+command")
_UV_RUN: Final = Launcher(
    "command",
    f"{_UV_PACKAGES} --no-project --frozen --locked --no-sync --active --exact --no-dev "
    "--only-dev --all-extras --all-groups --no-default-groups --extra= --group= --package= "
    "--no-group= --no-extra= -m=>module --module=>module -s=>script --script=>script",
)
_CONTAINER: Final = Launcher(
    "anything",
    "-i -t --interactive --tty --rm --init --read-only -e= --env= --env-file= --name= -p= "
    "--publish= -w= --workdir= -u= --user= -l= --label= -h= --hostname= --add-host= --platform= "
    "--pull= --entrypoint= -m= --memory= --memory-swap= --cpus= --pids-limit= --shm-size= "
    "--tmpfs= --cap-drop= --gpus= --ulimit= --dns= --network=word --net=word -v=mount "
    "--volume=mount --mount=long_mount --security-opt=unprivileged",
    shapes="--interactive=true",
)
_DOCKER: Final = _words(
    run=_CONTAINER,
    container=_words(run=_CONTAINER),
    exec=Launcher("anything", "-i -t --interactive --tty -e= --env= -w= --workdir= -u= --user="),
    mcp=_words(gateway=_words(run=Launcher("anything", optional=True))),
)
_JAVA: Final = Launcher(
    "class",
    "-server -ea --enable-preview -cp= -classpath= --class-path= -p= --module-path= -jar=>file",
    # Few of Java's properties are plainly data: others name classes, or files that name them.
    shapes=r"-X(?:mx|ms|ss|mn)\d+[kKmMgG]?|-XX:\+Use\w+GC|-XX:\w+RAMPercentage=[\d.]+|"
    r"-D(?:\w+\.encoding|user\.(?:timezone|language)|server\.port|https?\.\w+|transport\.mode|"
    r"logging\.(?:pattern|level|file)\.[\w.]+|spring\.(?:main\.(?:web-application-type|banner-mode)|(?:ai|profiles)\.[\w.-]+))"
    r"(?:=.*)?",
)
_DOTNET_RUN: Final = Launcher(
    "anything",
    "--no-build --no-restore --no-launch-profile --nologo --project= -c=word "
    "--configuration=word -f=word --framework=word -v=word --verbosity=word",
    optional=True,
    mixed=True,
)
_DNX: Final = Launcher(
    "package by name",
    "-y --yes --prerelease --version=word --source=nuget --add-source=nuget",
    mixed=True,
)
_CARGO_RUN: Final = Launcher(
    "anything",
    "-r --release -q --quiet --locked --offline --manifest-path= --bin= -p= --package= "
    "--example= -F= --features=",
    optional=True,
    mixed=True,
)
_PROJECT: Final = _words(
    "-q --quiet -n --no-interaction -C=folder --directory=folder -P= --project=",
    run=Launcher("command", "-q --quiet -p= --project="),
)
_CONDA: Final = _words(
    run=Launcher(
        "command", "--no-capture-output --live-stream -n= --name= -p= --prefix= --cwd=folder"
    )
)
_BRIDGE: Final = _words(
    serve=Launcher(
        "command",
        "--host= --port= --token-file= --tls-cert= --tls-key= --allow-origin= --allow-host= "
        "--cwd=folder --idle-timeout= --max-connections=",
    )
)
LAUNCHERS: Final[Mapping[str, Launcher]] = MappingProxyType(
    {
        **dict.fromkeys(("python", "pythonw", "py", "pypy", "cpython", "graalpy"), _PYTHON),
        **dict.fromkeys(("node", "nodejs"), _NODE),
        **dict.fromkeys(("tsx", "ts-node"), _TSX),
        "npx": _NPX,
        "npm": _NPM,
        **dict.fromkeys(("pnpm", "yarn", "yarnpkg"), _NODE_PACKAGES),
        "bun": Launcher(
            "file", _BUN_OPTIONS, words={"run": Launcher("command", _BUN_OPTIONS), "x": _BUNX}
        ),
        "bunx": _BUNX,
        "deno": _words(run=_DENO_RUN, serve=_DENO_RUN, task=_TASK),
        "uv": _words(_UV_OPTIONS, run=_UV_RUN, tool=_words(run=_UVX)),
        "uvx": _UVX,
        "pipx": _words(
            run=Launcher("package by name", "-q --quiet --no-cache --python=python --spec=+command")
        ),
        **dict.fromkeys(("docker", "podman"), _DOCKER),
        **dict.fromkeys(("java", "javaw"), _JAVA),
        "dotnet": Launcher("file", words={"run": _DOTNET_RUN, "exec": Launcher("nothing")}),
        "dnx": _DNX,
        "go": _words(run=Launcher("package")),
        "cargo": _words(run=_CARGO_RUN),
        "php": Launcher("script", "-q -f=>script"),
        **dict.fromkeys(("perl", "ruby", "rscript", "julia", "lua"), _SCRIPT),
        **dict.fromkeys(("poetry", "pipenv", "pdm", "rye"), _PROJECT),
        **dict.fromkeys(("conda", "mamba", "micromamba"), _CONDA),
        "bundle": _words(exec=_COMMAND),
        "env": _COMMAND,
        "cmd": _words(**dict.fromkeys(("/c", "/C"), Launcher("command of cmd"))),
        "mcp-bridge": _BRIDGE,
        "caal-node": _words(mcp=_BRIDGE),
    }
)
MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: name for name in ("uv", "pipx", "poetry", "pipenv")},
        "mcp_bridge": "mcp-bridge",
        "caal_node": "caal-node",
    }
)
"""Python's modules that are one of the launchers."""
SHELLS: Final = _names("sh bash rbash dash zsh ksh mksh csh tcsh ash cmd powershell pwsh")
TOOLS: Final = SHELLS | _names(
    """
    fish nu elvish xonsh busybox toybox wsl sudo doas su gsudo run0 nice timeout nohup setsid time
    xargs parallel watch watchexec watchfiles entr nodemon concurrently cross-env onchange just
    make gmake cmake ninja meson bazel gcc g++ clang cc ld gdb lldb strace dtruss perf hyperfine
    git hg svn gh ssh scp sftp rsync tar zip find fd sed awk gawk ed vi vim nvim emacs nano less
    man tmux screen script expect socat nc ncat curl wget mise asdf direnv hatch pixi tox nox invoke
    corepack elixir iex erl groovy scala kotlin swift tclsh guile racket sbcl clojure octave ghci
    fire coverage ipython pytest pip debugpy faketime firejail chroot unshare nsenter capsh tini
    dumb-init osascript open launchctl rundll32 regsvr32 mshta wscript cscript msiexec forfiles
    """
)
"""What runs that its arguments say, by names that are also found outside of the system's folders.
A second line: most programs of that kind lie in one."""
