"""Knows environment variables that make another program run other code than its own.

What a server inherits from this process is a short list (HOME, LOGNAME, PATH, SHELL, TERM, USER;
on Windows the system's own), so none of these comes from the host with another value than the
user's own. They could come from the configuration, where they would run code beside a command
that looks harmless.
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
        "UV_NO_PROGRESS", "UV_OFFLINE", "UV_LINK_MODE", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS",
        "UV_HTTP_TIMEOUT", "UV_REQUEST_TIMEOUT", "UV_HTTP_RETRIES", "UV_NO_CACHE", "UV_FROZEN",
        "UV_LOCKED", "UV_NO_SYNC", "UV_NO_CONFIG", "UV_NO_ENV_FILE", "UV_NO_DEV",
        "UV_COMPILE_BYTECODE", "UV_EXCLUDE_NEWER", "UV_CONCURRENT_DOWNLOADS",
        "UV_CONCURRENT_BUILDS", "UV_CONCURRENT_INSTALLS",
        "PERL_UNICODE", "PERL_BADLANG", "PERL_HASH_SEED", "JULIA_NUM_THREADS", "MIX_ENV",
        "DOTNET_ENVIRONMENT", "DOTNET_NOLOGO", "DOTNET_CLI_TELEMETRY_OPTOUT",
        "DOTNET_CLI_UI_LANGUAGE", "DOTNET_SKIP_FIRST_TIME_EXPERIENCE", "DOTNET_GCSERVER",
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "DOTNET_RUNNING_IN_CONTAINER",
        "DOTNET_ROLL_FORWARD", "DOTNET_TIEREDPGO", "DOTNET_GCHEAPHARDLIMIT",
    }
)  # fmt: skip
"""They turn output, caches and the like on and off, and load nothing, though `_LOADERS` has their
beginning. Many servers' pages ask for the first three."""
_LOADERS: Final = (
    # the dynamic linker and libraries
    "LD_*", "DYLD_*", "LIBPATH", "SHLIB_PATH", "GLIBC_TUNABLES", "GCONV_PATH", "OPENSSL_CONF*",
    "OPENSSL_MODULES", "OPENSSL_ENGINES", "GTK_MODULES", "GTK_PATH", "GIO_EXTRA_MODULES",
    "GI_TYPELIB_PATH", "GST_PLUGIN*", "GDK_PIXBUF_MODULE*", "QT_PLUGIN_PATH",
    "QT_QPA_PLATFORM_PLUGIN_PATH", "ODBCINI", "ODBCINSTINI", "ODBCSYSINI", "MAGICK_*PATH",
    "SASL_PATH",
    # where programs are found, and which one is the shell
    "PATH", "PATHEXT", "COMSPEC", "SHELL", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "PROGRAMFILES*",
    "COMMONPROGRAMFILES*",
    # where a user's configuration and modules are found: Python's usercustomize, .npmrc, .gitconfig
    "HOME", "HOMEDRIVE", "HOMEPATH", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
    "ALLUSERSPROFILE", "XDG_CONFIG_*", "XDG_DATA_*", "XDG_CACHE_HOME", "XDG_BIN_HOME",
    "PREFIX", "DESTDIR",
    # shells
    "BASH_*", "ENV", "ZDOTDIR", "FPATH", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND",
    "PS4", "IFS", "INPUTRC", "FISH_*", "XONSH*", "PSMODULE*",
    # Node.js, Bun, Deno
    "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "NODE_COMPILE_CACHE",
    "NODE_CONFIG_DIR", "NODE_GYP_*", "TS_NODE_*", "TSX_TSCONFIG_PATH", "BABEL_CACHE_PATH",
    "ESBUILD_BINARY_PATH", "ELECTRON_RUN_AS_NODE", "ELECTRON_OVERRIDE_DIST_PATH", "BUN_*",
    "DENO_*",
    # Python
    "PYTHON*", "VIRTUAL_ENV", "PYENV_*", "CONDA_*", "CONDARC", "MAMBA_*", "PIXI_*", "IPYTHONDIR",
    "JUPYTER_PATH", "JUPYTER_CONFIG_*", "COVERAGE_PROCESS_START", "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS", "SETUPTOOLS_*", "DISTUTILS_*",
    # Perl, Ruby, PHP, Lua
    "PERL*", "RUBYOPT", "RUBYLIB", "RUBYSHELL", "RUBYPATH", "RUBYGEMS_*", "DLN_LIBRARY_PATH",
    "IRBRC", "JRUBY_*", "RBENV_*", "GEM_*", "BUNDLE_*", "BUNDLER_*", "PHPRC", "PHP_INI_SCAN_DIR",
    "COMPOSER_*", "LUA_*", "LUAROCKS_*",
    # Java, .NET, Go
    "*JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JAVA_OPTS", "JAVA_HOME", "JRE_HOME", "CLASSPATH",
    "MAVEN_*", "GRADLE_*", "JBANG_*", "DOTNET_*", "CORECLR_*", "COR_*", "COMPLUS_*", "NUGET_*",
    "MSBUILD*", "CUSTOMBEFORE*", "CUSTOMAFTER*", "DIRECTORYBUILD*",
    "ASPNETCORE_HOSTINGSTARTUP*", "GOFLAGS", "GOPROXY", "GOROOT", "GOTOOLCHAIN", "GOTOOLDIR",
    "GOENV", "GOPATH", "GOBIN", "GOCACHE", "GOCACHEPROG", "GOMODCACHE", "GOWORK", "GOAUTH",
    "GOVCS", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "CGO_*",
    # other interpreters
    "R_PROFILE*", "R_ENVIRON*", "R_LIBS*", "R_HOME", "JULIA_*", "GUILE_*", "ERL_*", "ELIXIR_*",
    "MIX_*", "TCLLIBPATH", "PLTCOLLECTS", "PLTADDONDIR", "PLTUSERHOME", "SBCL_HOME", "OCAMLPATH",
    # what builds a package that is fetched as source
    "MAKE", "MAKEFLAGS", "MAKEFILES", "MFLAGS", "GNUMAKEFLAGS", "CC", "CXX", "LD", "AR", "CFLAGS",
    "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED", "CMAKE_*", "PKG_CONFIG*", "CARGO_*", "RUSTC*",
    "RUSTFLAGS", "RUSTUP_*",
    # package runners: where code is fetched from, and what runs it
    "NPM_CONFIG_*", "NPM_EXECPATH", "NPM_NODE_EXECPATH", "COREPACK_*", "YARN_*", "PNPM_*", "PIP_*",
    "PIPX_*", "PIPENV_*", "POETRY_*", "PDM_*", "HATCH_*", "RYE_*", "UV_*", "MISE_*", "ASDF_*",
    "VOLTA_*", "NODENV_*", "NVM_*", "FNM_*",
    # git and other version control
    "GIT_SSH*", "GIT_EXEC_PATH", "GIT_CONFIG*", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_TEMPLATE_DIR",
    "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_ATTR_*", "GIT_ALLOW_PROTOCOL",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CEILING_DIRECTORIES", "HGRCPATH", "HGEDITOR",
    "SVN_SSH", "SVN_EDITOR", "CVS_RSH", "GNUPGHOME",
    # programs that start others
    "SSH_ASKPASS*", "SSH_SK_*", "SSH_PKCS11_HELPER", "RSYNC_RSH", "SUDO_ASKPASS", "PAGER",
    "MANPAGER", "SYSTEMD_PAGER", "EDITOR", "VISUAL", "FCEDIT", "BROWSER", "LESS", "LESSOPEN",
    "LESSCLOSE", "LESSKEY*", "VIMINIT", "EXINIT", "VIMRUNTIME", "TAR_OPTIONS",
    "RIPGREP_CONFIG_PATH", "CURL_HOME", "WGETRC",
)  # fmt: skip
_LOADER_NAME: Final = re.compile(
    "|".join(re.escape(name).replace(r"\*", ".*") for name in _LOADERS), re.DOTALL
)


def loads_code(names: Iterable[str]) -> list[str]:
    """Gives those of `names` that a server must not be given. Case does not count, as for npm."""
    return [
        name
        for name in names
        if name.upper() not in _HARMLESS and _LOADER_NAME.fullmatch(name.upper()) is not None
    ]
