"""Judges one server's configuration: its address, what its command starts, and its variables.

What its owner allows in the entry is no finding.
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcp_bridge.core.files import expand_home
from mcp_bridge.core.sanitize import one_line
from mcp_bridge.core.server_config import Allowance, ServerConfig, is_loopback
from mcp_bridge.security.programs import (
    LAUNCHERS,
    MODULES,
    PATTERNS,
    SHELLS,
    TOOLS,
    Launcher,
    Named,
    Places,
    Unknown,
    is_of_python,
    is_of_system,
    is_tool,
    launcher_of_script,
    names,
    plain_name,
    read,
)

# What speaks against an entry of the configuration, and the word that lets it pass.


@dataclass(frozen=True, slots=True)
class Finding:
    """One objection to an entry, and how to fix it."""

    key: str
    """The key of the entry: `command`, `args`, `env.NODE_OPTIONS`, `url`."""
    reason: str
    fix: str
    allowance: Allowance

    def __str__(self) -> str:
        return f'{self.reason}; {self.fix}, or write "allow": ["{self.allowance}"]'


def in_one_sentence(findings: Sequence[Finding]) -> str:
    """Says all that is asked for at once, so that nobody fixes one thing to meet the next."""
    if len(findings) == 1:
        return str(findings[0])
    first, *others = findings
    reasons = [first.reason, *(f"{one.key} {one.reason}" for one in others)]
    words = ", ".join(f'"{word}"' for word in dict.fromkeys(one.allowance for one in findings))
    return f'{"; ".join(reasons)}; fix these, or write "allow": [{words}]'


_ENCRYPTED: Final = {"http": "https", "ws": "wss"}
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_IPV6_INTERNET: Final = ipaddress.IPv6Network("2000::/3")
"""All that is assigned there. The rest is for links, sites, groups and translation."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""An IPv4 address in its last 32 bits (RFC 6052), for networks that have only IPv6."""
_KEPT: Final = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("3fff::/20"))
"""Kept by IANA; older Pythons take them for ordinary ones."""


def plain_text(url: str) -> Finding | None:
    """Objects to an address where anyone on the way could read and change what is sent."""
    scheme = urlsplit(url).scheme
    if scheme not in _ENCRYPTED or is_loopback(url):
        return None
    reason = f"{scheme}:// goes over the network unencrypted"
    return Finding("url", reason, f"use {_ENCRYPTED[scheme]}://", "http")


def is_public(host: str) -> bool:
    """Tells whether `host` is the number of an address in the public internet.

    This machine, private networks, links, carriers' networks (100.64.0.0/10), groups and whatever
    is kept for a purpose are not.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)))
        if address not in _IPV6_INTERNET or address.sixtofour or address.teredo:
            return False
    kept = any(address in network for network in _KEPT)
    return address.is_global and not address.is_multicast and not kept


def same_origin(url: str, location: str) -> bool:
    """Tells whether a redirect from `url` to `location` stays with one server, as encrypted."""
    try:
        return origin_of(url) == origin_of(urljoin(url, location))
    except ValueError:
        return False


def origin_of(url: str) -> tuple[str, str, int]:
    """Gives scheme, host and port. Raises: ValueError, where it is no address."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


# Judges what a launcher is told to start: a script, a module, a package, a program.
#
# Each is trusted by the name that the owner reads. What only looks like one is not: stdin, an
# address, what comes with the system or with Python, or another launcher.

_SCRIPTS: Final = re.compile(r".*\.(?:py|pyw|[cm]?[jt]sx?)", re.IGNORECASE | re.DOTALL)
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
"""A letter alone before the colon is a drive."""
_PUBLISHED: Final = re.compile(r"(?:https://|jsr:|npm:)[^\s]+")
_PATH: Final = re.compile(r"[/\\.~]|[a-z]:[/\\]", re.IGNORECASE)
_STDIN: Final = re.compile(r"-|/+(?:dev|proc)/.*", re.DOTALL)
_REQUIREMENT: Final = re.compile(r"[\[<>=!~;@\s]")
"""Where the name of a package ends, and its version or what else is wanted of it begins."""
_MODULE: Final = re.compile(r"[^\W\d_]\w*(?:\.\w+)*")
_CLASS: Final = re.compile(r"(?!(?:javax?|jdk|sun|com\.sun)\.)[\w$]+(?:[./][\w$]+)*")
BATCH_CHARS: Final = frozenset('%!^&|<>"\n\r')
"""What cmd.exe reads, quoted or not."""


@dataclass(frozen=True, slots=True)
class Inner:
    """What is started behind a launcher, with its arguments, to be judged in its turn."""

    command: str
    args: tuple[str, ...]
    trusted: bool = False
    """Whether it is trusted by its name, so that its arguments alone are looked at."""


def judged(name: str, named: Named, places: Places) -> Iterator[Finding | Inner]:
    """Judges what `name` is told to start: yields objections, and what is to be judged further."""
    starts, what, rest = named.starts, named.what, named.rest
    match starts:
        case "nothing" if name in SHELLS:
            yield shell("args", name)
        case "nothing":
            yield code(f"{name} is given {what!r}, which is not known to start a server")
        case "script" | "script or address" | "file":
            if starts == "script or address" and _PUBLISHED.fullmatch(what):
                yield from _package(name, what, rest, places)
                return
            if starts == "file" and not re.search(r"[./\\]", what):
                yield code(f"{name} is given {what!r}, which is no file")
                return
            yield from _script(name, what, rest, places)
        case "class":
            if what.endswith(".java"):
                yield from _script(name, what, rest, places)
            elif not _CLASS.fullmatch(what):
                yield code(f"{name} is given {what!r}, which is no class of a server")
        case "module":
            yield from _module(name, what, rest)
        case "package" | "package by name":
            if starts == "package by name" and _ADDRESS.match(what):
                yield code(f"{name} is given {what!r}, which is no package's name")
            else:
                yield from _package(name, what, rest, places)
        case "command":
            # Some launchers have a shell read their first word.
            if re.search(r"^-|^[^/\\]*=|[;&|<>$`\"'\s]", what) and places.located(what) is None:
                yield code(f"{name} is given {what!r}, which is no program")
            elif _ADDRESS.match(what) or _STDIN.fullmatch(what):
                yield code(f"{name} is given {what!r}, which is no file")
            elif _SCRIPTS.fullmatch(what):
                yield from _script(name, what, rest, places)
            else:
                yield Inner(what, rest)
        case "command of cmd":
            if char := first_char(BATCH_CHARS, [what, *rest]):
                reason = f"cmd.exe would read {char!r} in them"
                fix = "start the program itself"
                yield Finding("args", reason, fix, "metacharacters")
            elif plain_name(what) not in LAUNCHERS:
                yield shell("args", "cmd")
            else:
                yield Inner(what, rest)
        case _:  # the owner's own: a task of the project, what runs in a container
            return


def _package(
    name: str, what: str, rest: tuple[str, ...], places: Places
) -> Iterator[Finding | Inner]:
    base = _REQUIREMENT.split(what.removeprefix("npm:"), maxsplit=1)[0]
    if not PATTERNS["package"].fullmatch(what):
        yield code(f"{name} is given {what!r}, which is no package's name")
    elif _PATH.match(what) or places.located(what) is not None:  # npx runs a file that it is given
        yield Inner(what, rest)
    elif not re.search(r"[/\\:]", base) and plain_name(base) in LAUNCHERS.keys() | TOOLS:
        yield Inner(base, rest)
    else:
        yield Inner(what, rest, trusted=True)


def _script(
    name: str, what: str, rest: tuple[str, ...], places: Places
) -> Iterator[Finding | Inner]:
    path = places.path(what)
    if any(map(_STDIN.fullmatch, (what, os.path.normpath(path), os.path.realpath(path)))):
        yield code(f"{name} is given {what!r}: what it is sent would be its program")
    elif _ADDRESS.match(what):
        yield code(f"{name} is given {what!r}, which is no file")
    elif launcher := next(launcher_of_script(path), None):
        yield Inner(launcher, rest)
    elif is_of_system(path) or is_of_python(path):
        yield code(f"{name} is given {what!r}, which comes with the system or with Python")
    # Whatever else lies there is the owner's own, and so are its arguments.


def _module(name: str, what: str, rest: tuple[str, ...]) -> Iterator[Finding | Inner]:
    root = what.partition(".")[0]
    if not _MODULE.fullmatch(what) or root in sys.stdlib_module_names:
        yield code(f"{name} is given -m {what}, which is no server but Python's own")
    elif root in MODULES or root.lower() in TOOLS:
        yield Inner(MODULES.get(root, root), rest)
    else:
        yield Inner(what, rest, trusted=True)


def shell(key: str, name: str) -> Finding:
    fix = "start the program itself, or a script by its own path"
    return Finding(key, f"{name} is a shell", fix, "command")


def code(reason: str, fix: str = "name the server's own script, module or package") -> Finding:
    return Finding("args", reason, fix, "eval")


def first_char(chars: frozenset[str], texts: Iterable[str]) -> str:
    """Gives the first of `chars` that stands in the texts, or an empty text."""
    return next((char for text in texts for char in text if char in chars), "")


# Finds out what a command starts in the end, and what of it its owner has to vouch for.
#
# What passes is a launcher with the arguments that it is known to take, up to the script, module,
# package or image that it is told to start; or a program that lies outside of the system's folders.
# Those are trusted by the name that the owner reads, and their own arguments are free. Programs are
# judged by their names: as written, along symbolic links, and behind launchers, however deep.
#
# Servers are started without a shell, so arguments may hold anything. There are two exceptions: a
# command that looks like a shell's line is a mistake or worse; and on Windows `npx` is a batch
# file, which cmd.exe reads with rules that quoting does not satisfy (CVE-2024-24576, "BatBadBut").

_MAX_DEPTH: Final = 8
"""So many launchers in one another are followed."""
_SHIMS: Final = frozenset({"snap", "mise", "asdf"})
"""Links lead to these, which then start the program of the link's name."""
_NAME_CHARS: Final = frozenset(';&|<>$`"\n\r')
"""Paths may hold brackets and quotes; these they hardly do."""
_BATCH_ENDINGS: Final = (".cmd", ".bat")
_WHAT: Final = {
    "module": "module",
    "package": "package",
    "package by name": "package",
    "command": "program",
    "command of cmd": "program",
}


def judge(
    command: str,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    search_path: str | None = None,
    windows: bool = False,
) -> Iterator[Finding]:
    """Yields everything that its owner has to vouch for. It reads the disk to follow links."""
    places = Places(cwd, search_path)
    unprintable = (char for char in command if not char.isprintable())
    if char := first_char(_NAME_CHARS, [command]) or next(unprintable, ""):
        yield Finding(
            "command",
            f"holds {char!r}, and no shell reads it",
            "write the program alone, and its arguments into args",
            "metacharacters",
        )
    try:
        yield from _program(command, args, places, "command", 0)
    except (OSError, ValueError):  # a path that no system takes
        yield Finding("args", "cannot be looked up", "fix the paths in it", "command")
    if windows and (char := char_for_batch_file(places.located(command) or command, args)):
        reason = f"cmd.exe would read {char!r} in them, since the command is a batch file"
        fix = "start the program behind it (node, python)"
        yield Finding("args", reason, fix, "metacharacters")


def _program(
    command: str, args: Sequence[str], places: Places, key: str, depth: int
) -> Iterator[Finding]:
    program = places.located(command)
    scripts = launcher_of_script(program) if program is not None else ()
    called = list(dict.fromkeys((*names(command, program), *scripts)))
    launchers = {id(LAUNCHERS[name]): name for name in reversed(called) if name in LAUNCHERS}
    for name in called:
        if name in SHELLS and name not in LAUNCHERS:
            yield shell(key, name)
            return
        if name not in LAUNCHERS and name not in _SHIMS & set(called[1:]) and is_tool(name):
            reason = f"{name} is a program of the system, and no launcher of servers that is known"
            yield Finding(key, reason, "name the server's program", "command")
            return
    if launchers:
        for name in launchers.values():
            yield from _launched(name, LAUNCHERS[name], args, places, depth)
    elif program is not None and is_of_system(program):
        reason = f"{called[-1]} is of the system, and no launcher of servers that is known"
        yield Finding(key, reason, "name the server's program", "command")
    else:
        yield from _own(called[0] if called else command, args, places, depth)


def _own(name: str, args: Sequence[str], places: Places, depth: int) -> Iterator[Finding]:
    """Judges the arguments of what is trusted by its name: they may not lead to a shell.

    A launcher among them is judged where an option follows it, unless it looks like a value.
    """
    before = "--"
    for at, word in enumerate(args):
        for text in (word, word.partition("=")[2]):
            first = text.split(maxsplit=1)[:1]
            if first and plain_name(first[0]) in SHELLS:
                yield shell("args", f"{text!r} behind {name}")
                return
        inner, behind = LAUNCHERS.get(plain_name(word)), args[at + 1 :]
        is_value = before.startswith("-") and before != "--"
        if inner and not is_value and behind and behind[0].startswith("-"):
            yield from _launched(word, inner, behind, places, depth + 1)
            return
        before = word


def _launched(
    name: str, launcher: Launcher, args: Sequence[str], places: Places, depth: int
) -> Iterator[Finding]:
    if depth > _MAX_DEPTH:
        reason = f"has over {_MAX_DEPTH} launchers in one another"
        yield Finding("args", reason, "start the program itself", "command")
        return
    match read(launcher, args):
        case Unknown() if name in SHELLS:
            yield shell("args", name)
        case Unknown(word=""):
            yield code(f"{name} is told of no {_WHAT.get(launcher.starts, 'script')}", "name one")
        case Unknown(word=word):
            reason = f"{name} is given {word!r}, which is not known to be harmless"
            files = word.startswith("--env-file")
            yield code(reason, "write its variables into env" if files else "leave it out")
        case Named() as named:
            places = places.within(named.folder)
            for step in judged(name, named, places):
                if isinstance(step, Finding):
                    yield step
                elif step.trusted:
                    yield from _own(step.command, step.args, places, depth)
                else:
                    yield from _program(step.command, step.args, places, "args", depth + 1)


def char_for_batch_file(program: str, args: Iterable[str]) -> str:
    """Gives the first character that cmd.exe would read, which runs batch files unasked."""
    if not program.lower().rstrip(". ").endswith(_BATCH_ENDINGS):
        return ""
    return first_char(BATCH_CHARS, args)


# Tells which variables of an entry are plainly data, by what their names end with.
#
# Loaders, runtimes, package managers and tools read variables beyond counting, and run code for
# them. So what counts is not which names are bad, but which can only be data: a key, an address, a
# number. Names of which that cannot be told, and all of a runtime's own, are for the file's owner
# to allow.
#
# What a server inherits from this process is a short list (HOME, LOGNAME, PATH, SHELL, TERM, USER;
# on Windows the system's own), which has the user's own values.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLAIN: Final = _words(
    """
    TZ LANG LANGUAGE LC_ALL LC_CTYPE NO_COLOR FORCE_COLOR CI DEBUG DISPLAY HTTP_PROXY
    HTTPS_PROXY ALL_PROXY NO_PROXY NODE_ENV PYTHON_ENV DOTNET_ENVIRONMENT ASPNETCORE_ENVIRONMENT
    RAILS_ENV PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE
    PYTHONHASHSEED PYTHONNOUSERSITE PYTHONFAULTHANDLER UV_NO_PROGRESS UV_OFFLINE UV_FROZEN
    UV_LOCKED UV_NO_SYNC DOTNET_CLI_TELEMETRY_OPTOUT DOTNET_NOLOGO GIT_AUTHOR_NAME
    GIT_COMMITTER_NAME GIT_TERMINAL_PROMPT PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSSLMODE
    """
)
"""Whole names that are data, though a runtime reads them or nothing shows it."""
_LOCALES: Final = _words("LANG LANGUAGE LC_ALL LC_CTYPE")
_IDENTITY: Final = _words(
    "KEY TOKEN SECRET PASSWORD PASS PWD PASSPHRASE USERNAME EMAIL ID IDS PORT TIMEOUT"
)
"""Last words that are data in any name."""
_DATA: Final = _IDENTITY | _words(
    """
    ACCOUNT ADDR ADDRESS ALLOWED AUTH BASE BOARD BRANCH BROKER BUCKET CALENDAR CHANNEL CHANNELS
    CHAT CITY CLIENT COLLECTION CONCURRENCY CONNECTION COOKIE COUNT COUNTRY CREDENTIALS CURRENCY
    DATABASE DATASET DATE DAYS DB DEBUG DEFAULT DELAY DEPTH DIALECT DIMENSIONS DISABLED DOMAIN
    DOMAINS DSN ENABLED ENCODING ENDPOINT ENDPOINTS ENV ENVIRONMENT FEATURES FILTER FORMAT GROUP
    GROUPS HEADER HEADERS HOST HOSTNAME HOSTS INDEX INSTANCE INTERVAL KEYS LABEL LABELS LATITUDE
    LEVEL LIMIT LOCATION LOGIN LOGLEVEL LONGITUDE MAX MIN MODE MODEL MODELS NAME NAMES
    NAMESPACE NUMBER ONLY ORG ORGANIZATION OWNER PARTITION PAT PHONE PORTS PROFILE PROJECT
    PROJECTS PROVIDER QUERY QUEUE READONLY REALM REGION REGIONS REPO REPOSITORIES REPOSITORY
    RETRIES ROLE ROLES ROOM SCHEMA SCOPE SCOPES SERVER SID SITE SIZE SPACE SPACES STAGE STREAM
    STRING SUBSCRIPTION SUFFIX TABLE TAG TAGS TEAM TEMPERATURE TENANT THRESHOLD TIMEZONE TOKENS
    TOOLS TOOLSETS TOPIC TRANSPORT TTL TYPE UNIT UNITS URI URIS URL URLS USER USERS UUID VERBOSE
    VERSION WEBHOOK WORKSPACE ZONE
    """
)
"""Last words that are data in the name of a server's own variable."""
_PLACES: Final = _words("PATH PATHS FILE FILES DIR DIRS DIRECTORY DIRECTORIES FOLDER")
_KEPT_THERE: Final = _words(
    """
    ALLOWED AUDIO BACKUP CREDENTIALS CSV DATA DATABASE DB DOCS DOCUMENTS DOWNLOAD DOWNLOADS
    EXCEL EXPORT GRAPH IMAGE IMAGES INPUT KEY KNOWLEDGE LOG LOGS MEDIA MEMORY NOTES OAUTH OUTPUT
    PDF PROJECT PROJECTS RECORDINGS REPO REPOS REPOSITORY SCREENSHOT SCREENSHOTS SQLITE STORAGE
    TASKS TOKEN UPLOAD UPLOADS VAULT VIDEO WORKING WORKSPACE
    """
)
"""What a path may lead to: these before PATH, FILE or DIR."""
_CODE: Final = _words(
    """
    ARGS BIN BINARY BOTTLE ARTIFACT BROWSERS BUILD BUS CMD COMMAND COMMANDS CONFIG DIST DOWNLOAD
    DRIVER DRIVERS EDITOR ENGINE EXEC EXECUTABLE EXECUTABLES EXTENSIONS FLAGS HELPER HOOK HOOKS
    INIT INSTALL JSR LAUNCH LAYER LIB LIBRARY LIBS LOADER MIRROR MODULE MODULES OPT OPTIONS OPTS
    PAGER PKG PLUGIN PLUGINS PRELOAD PYPI RC REGISTRY REQUIRE SCRIPT SCRIPTS SHELL STARTUP
    """
)
"""Words with which nothing is plainly data, whatever the name ends with."""
_RUNTIMES: Final = _words(
    """
    ASDF_ AWS_CONFIG AWS_SHARED BASH BAZEL BUNDLE BUN_ CARGO CATALINA CCACHE CGO_ CLASS CMAKE
    COMPLUS COMPOSER CONDA CONTAINER_ CORECLR COREPACK COR_ COVERAGE CURL DBUS DEBUGINFOD DENO_
    DOCKER_ DOTNET_ DYLD_ ELECTRON ERL_ FISH FNM_ GCC GCONV GDK GEM_ GIO_ GIT_ GLIBC GST_ GTK
    GUILE HOMEBREW JAVA JBANG JDK JRE JULIA KRB5 LC_ LD_ LUA MAKEF MAMBA MAVEN MISE_ MIX_
    MSBUILD NIX NODE NPM_ NSS_ NUGET NVM OCAML OPENSSL PERL PHP PIPENV_ PIPX_ PIP_ PIXI PKCS11
    PNPM POETRY PYENV PYTEST PYTHON QML QT_ RBENV RUBY RUST R_ SSH_ASKPASS SSH_PKCS SSH_SK SSL_
    SUDO SYSTEMD TCL TK_ TSX TS_NODE UV_ VIRTUAL VOLTA XDG_ YARN ZSH _
    """
)
"""How the names begin that runtimes, loaders and package managers read. A second line: most of
what they read ends with no word of `_DATA`."""
_PLAIN_VALUE: Final = re.compile(
    r"\d{1,12}(\.\d{1,6})?|true|false|yes|no|on|off|debug|info|warn|warning|error", re.IGNORECASE
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")


def is_data(name: str, value: str) -> bool:
    """Tells whether a variable can be nothing but data, for whatever program reads it."""
    upper = name.upper()
    # A shell runs the file that ENV names; a locale's name may lead to a file as well.
    if not _NAME.fullmatch(name) or upper == "ENV" or (upper in _LOCALES and "/" in value):
        return False
    # Names in mixed case, as .NET has them, are read by their humps: `BookApi__BaseUrl`.
    mixed = name not in (upper, name.lower())
    words = [word.upper() for word in _WORD.findall(name)] if mixed else upper.split("_")
    if upper in _PLAIN or words[-1] in _IDENTITY:
        return True
    if upper.startswith(tuple(_RUNTIMES)):
        return False
    *before, last = [word for word in words if word not in _PLACES] or [""]
    if words[-1] in _PLACES:
        return last in _KEPT_THERE and _CODE.isdisjoint(before)
    if not _CODE.isdisjoint(words):
        return False
    return last in _DATA or _PLAIN_VALUE.fullmatch(value) is not None


_MAX_REASON_CHARS: Final = 200
"""A reason quotes the entry, whose words may be of any length."""


def objections(config: ServerConfig) -> Iterator[Finding]:
    """Yields the objections that the owner does not allow. This reads the disk.

    It is asked when the file is read, and again before a server is started: a link may have
    changed.
    """
    for finding in _findings(config):
        if finding.allowance not in config.allow:
            reason = one_line(config.redact(finding.reason), _MAX_REASON_CHARS)
            yield replace(finding, reason=reason)


def _findings(config: ServerConfig) -> Iterator[Finding]:
    if config.transport != "stdio":
        if (finding := plain_text(config.url)) is not None:
            yield finding
        return
    for name, value in config.env.items():
        if not is_data(name, value):
            reason = "is not plainly data: programs may take code from it, or the place of code"
            yield Finding(f"env.{name}", reason, "remove it", "env")
    path = config.env.get("PATH") or os.environ.get("PATH")  # as the SDK passes it on
    yield from judge(
        config.command,
        config.args,
        cwd=Path(expand_home(config.cwd)) if config.cwd else None,
        search_path=path,
        windows=sys.platform == "win32",
    )
