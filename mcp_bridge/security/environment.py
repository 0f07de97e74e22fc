"""Environment variables that make another program run other code than its own.

What a server inherits from this process is a short list (HOME, LOGNAME, PATH, SHELL, TERM, USER;
on Windows the system's own), so none of these comes from the host. They could come from the
configuration, where they would run code beside a command that looks harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_HARMLESS: Final = frozenset(
    {
        "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONFAULTHANDLER",
        "PYTHONLEGACYWINDOWSSTDIO", "PYTHONLEGACYWINDOWSFSENCODING",
    }
)  # fmt: skip
"""They turn output and caches on and off, and load nothing. Many servers' pages ask for the first
three."""
_LOADERS: Final = (
    # the dynamic linker and libraries
    "LD_*", "DYLD_*", "GCONV_PATH", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES",
    "GTK_MODULES", "GTK_PATH", "GIO_EXTRA_MODULES", "QT_PLUGIN_PATH",
    # where programs are found, and which one is the shell
    "PATH", "PATHEXT", "COMSPEC", "SHELL",
    # shells
    "BASH_ENV", "BASH_FUNC_*", "ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4",
    "IFS",
    # interpreters and virtual machines
    "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_*", "DENO_*",
    "PYTHON*", "PERL5*", "PERLLIB", "RUBYOPT", "RUBYLIB", "RUBYSHELL", "GEM_*", "BUNDLE_*",
    "BUNDLER_*", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS",
    "CLASSPATH", "MAVEN_*", "GRADLE_OPTS", "DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_SHARED_STORE", "CORECLR_*", "COR_*", "COMPLUS_*", "PHPRC", "PHP_INI_SCAN_DIR", "LUA_*",
    "R_PROFILE*", "R_ENVIRON*", "R_LIBS*", "R_HOME", "JULIA_*", "GUILE_*", "ERL_*", "ELIXIR_*",
    "TCLLIBPATH", "MAKEFLAGS",
    # package runners: where code is fetched from, and what runs it
    "NPM_CONFIG_*", "YARN_*", "PNPM_*", "PIP_*", "UV_INDEX*", "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE", "UV_CONSTRAINT", "UV_OVERRIDE",
    "UV_PYTHON*", "UV_ENV_FILE", "UV_INSECURE_HOST", "CARGO_*", "RUSTC*", "RUSTFLAGS", "GOFLAGS",
    "GOPROXY", "GOROOT", "GOTOOLCHAIN",
    # programs that start others
    "GIT_SSH*", "GIT_EXEC_PATH", "GIT_CONFIG*", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_TEMPLATE_DIR",
    "SSH_ASKPASS", "SUDO_ASKPASS", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN",
    "LESSCLOSE",
)  # fmt: skip
_LOADER: Final = re.compile(
    "|".join(re.escape(name).replace(r"\*", ".*") for name in _LOADERS), re.DOTALL
)


def loads_code(names: Iterable[str]) -> list[str]:
    """Those of `names` that a server may not be given. Case does not count: npm's are read so."""
    return [
        name
        for name in names
        if name.upper() not in _HARMLESS and _LOADER.fullmatch(name.upper()) is not None
    ]
