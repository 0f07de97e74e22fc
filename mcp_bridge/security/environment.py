"""Tells which variables of an entry are plainly data, by what their names end with.

Loaders, runtimes, package managers and tools read variables beyond counting, and run code for them.
So what counts is not which names are bad, but which can only be data: a key, an address, a number.
Names of which that cannot be told, and all of a runtime's own, are for the file's owner to allow.

What a server inherits from this process is a short list (HOME, LOGNAME, PATH, SHELL, TERM, USER;
on Windows the system's own), which has the user's own values.
"""

from __future__ import annotations

import re
from typing import Final


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
