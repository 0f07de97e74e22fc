"""The programs that a server may be started by: which are known, and which one a command means.

A program in one of the system's folders was put there with the system; servers are put elsewhere,
by npm, pip, go, cargo, Homebrew or their owner. `node_modules` counts as elsewhere, wherever it is.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PureWindowsPath
from types import MappingProxyType
from typing import Final

from mcp_bridge.core.files import expand_home

# The launchers that are known, each with the arguments that bring no code of their own.
#
# They are from manual pages and `--help`, and few on purpose: what servers' pages tell people to
# write. An option that is missing here asks for the owner's word; none that is here may bring code.

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


# Launchers that may have to download what they start, so that a first start takes minutes.

_RUNNERS: Final = frozenset(
    (
        *("npx", "npm", "pnpm", "yarn", "bunx", "bun", "deno"),
        *("uvx", "uv", "pipx", "poetry", "pdm"),
        *("docker", "podman", "dnx", "go", "cargo"),
    )
)
OFFLINE: Final[Mapping[str, str]] = {
    "UV_OFFLINE": "1",
    "npm_config_offline": "true",
    "YARN_ENABLE_NETWORK": "0",
    "PIP_NO_INDEX": "1",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
    "HF_HUB_OFFLINE": "1",
}
"""Variables by which runners, and what they start, fetch nothing; docker, bun, deno, dnx, pdm and
poetry have none."""
_BEHIND: Final = frozenset(("cmd", "env", "wsl"))
"""These start what their arguments say."""


def package_runner(command: str, args: Sequence[str]) -> str:
    """Gives the name of the package runner that a command is; "" where it is none."""
    name = plain_name(command)
    if name in _BEHIND:
        name = next((word for one in args if (word := plain_name(one)) in _RUNNERS), "")
    return name if name in _RUNNERS else ""


_MAX_LINKS: Final = 16
"""So many symbolic links are followed by name; real chains have two or three."""
_ENDINGS: Final = (".exe", ".cmd", ".bat", ".com", ".ps1")
_VERSION_CHARS: Final = 40
_VERSION: Final = re.compile(r"[-._]?\d[\d.]*t?$")
"""`python3.13t`, `perl5.36`, `node-22`."""
_SYSTEM_BIN: Final = os.pathsep.join(
    ("/bin", "/usr/bin", "/sbin", "/usr/sbin")
    if sys.platform != "win32"
    else (r"C:\Windows\System32", r"C:\Windows", r"C:\Windows\System32\WindowsPowerShell\v1.0")
)
_SYSTEM: Final = re.compile(
    r"/(?:bin|sbin|lib\w*|System|usr/(?!local/|src/)[^/]+)/|[a-z]:\\windows\\", re.IGNORECASE
)
_NPM_FOLDERS: Final = ("node_modules", "nodejs")
"""Global packages of npm lie below /usr on many systems; /usr/share/nodejs is Debian's folder."""


def located(command: str, cwd: Path | None, search_path: str | None) -> str | None:
    """Gives the absolute path of the program, or None where there is none. This reads the disk.

    A command with a slash in it is looked for from the folder that it is started in.
    """
    command = expand_home(command)
    if cwd is not None and os.path.dirname(command):  # noqa: PTH120 - `./x` and `x` differ here
        command = str(cwd / command)
    found = shutil.which(command, path=search_path)
    return str(Path(found).absolute()) if found else None


@dataclass(frozen=True, slots=True)
class Places:
    """Where a command would be looked for."""

    cwd: Path | None
    search_path: str | None

    def located(self, command: str) -> str | None:
        try:
            return located(command, self.cwd, self.search_path)
        except (OSError, ValueError, RuntimeError):  # a NUL; a home that is nobody's
            return None

    def within(self, folder: str) -> Places:
        """Gives the same, seen from `folder`."""
        return replace(self, cwd=Path(self.path(folder))) if folder else self

    def path(self, name: str) -> str:
        return str((self.cwd or Path()) / expand_home(name))


def names(command: str, program: str | None) -> Iterator[str]:
    """Yields the command's plain names: as written, at each link, and where the links end.

    A program may look at the name that it is called by (busybox does), and a link may hide one.
    """
    seen: set[str] = set()
    for name in (command, *_links(program)):
        if (short := plain_name(name)) and short not in seen:
            seen.add(short)
            yield short


def plain_name(name: str) -> str:
    """Removes folder, case, ending and version: `/usr/bin/Python3.11.exe` becomes `python`."""
    base = PureWindowsPath(name).name.lower().rstrip(". ")  # which knows both slashes
    base = base.partition("@")[0] or base
    for ending in _ENDINGS:
        base = base.removesuffix(ending)
    return base[:-_VERSION_CHARS] + _VERSION.sub("", base[-_VERSION_CHARS:]) or base


def is_tool(name: str) -> bool:
    """Tells whether a program of this plain name belongs to the system. This reads the disk."""
    if name in TOOLS:
        return True
    found = shutil.which(name, path=_SYSTEM_BIN)
    return found is not None and is_of_system(found)


def is_of_system(path: str) -> bool:
    """Tells whether a file, links followed, lies in a folder of the system."""
    real = os.path.realpath(path)
    return bool(_SYSTEM.match(real)) and not set(_NPM_FOLDERS) & set(Path(real).parts)


def is_of_python(path: str) -> bool:
    """Tells whether a file is of Python's own library, which holds modules that run code."""
    for folder in Path(os.path.realpath(path)).parents:
        if folder.name in {"site-packages", "dist-packages"}:
            return False
        if (folder / "os.py").exists() and (folder / "site.py").exists():
            return True
    return False


def launcher_of_script(path: str) -> Iterator[str]:
    """Yields the launcher or tool that a script is, such as `node_modules/npm/bin/npx-cli.js`."""
    for one in (path, os.path.realpath(path)):
        parts = PureWindowsPath(one).parts
        base = parts[-1].lower() if parts else ""
        candidates = [base]
        if "." in base:
            packages = [after for at, after in itertools.pairwise(parts) if at in _NPM_FOLDERS][-1:]
            candidates = (
                [base.partition(".")[0].removesuffix("-cli"), *packages] if packages else []
            )
        yield from [name for name in candidates if name in LAUNCHERS.keys() | TOOLS][:1]


def _links(program: str | None) -> Iterator[str]:
    if program is None:
        return
    at = program
    for _ in range(_MAX_LINKS):
        yield at
        try:
            at = os.path.join(os.path.dirname(at), os.readlink(at))  # noqa: PTH115, PTH118, PTH120 - text is all that is wanted
        except OSError:
            break
    yield os.path.realpath(program)
