"""What runs programs of packages and of versions that are kept apart, and how each is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from mcp_bridge.security.wrappers import Wrapper

_NPX: Final = Wrapper(
    "yq", "pw",
    ("--package", "--workspace", "--cache", "--registry", "--userconfig", "--prefix", "--loglevel"),
    ("--yes", "--no", "--no-install", "--quiet", "--silent", "--ignore-existing", "--offline",
     "--prefer-offline", "--prefer-online"),
    evals=("-c", "--call", "--shell", "--script-shell", "--node-options", "-n", "--node-arg"),
)  # fmt: skip
_UVX: Final = Wrapper(
    "qvnUh", "ipwPfcb",
    ("--from", "--with", "--with-editable", "--with-requirements", "--python", "--index",
     "--index-url", "--default-index", "--extra-index-url", "--find-links", "--env-file",
     "--constraints", "--overrides", "--directory", "--project", "--config-file", "--cache-dir",
     "--refresh-package", "--upgrade-package", "--link-mode", "--color", "--resolution",
     "--prerelease", "--exclude-newer", "--extra", "--group", "--only-group", "--package",
     "--keyring-provider", "--index-strategy"),
    ("--quiet", "--verbose", "--offline", "--isolated", "--no-cache", "--refresh", "--upgrade",
     "--native-tls", "--no-config", "--no-project", "--frozen", "--locked", "--no-sync",
     "--all-extras", "--no-progress", "--no-env-file", "--managed-python", "--dev",
     "--no-dev", "--active"),
)  # fmt: skip
_PNPM: Final = replace(
    _NPX,
    valued="pwCF",
    long_valued=(*_NPX.long_valued, "--dir", "--cwd", "--filter"),
    subcommands=("exec", "dlx", "run"),
    evals=(*_NPX.evals, "--shell-mode"),
    bare=True,
)
"""`pnpm x` and `yarn x` run x where no command and no script has that name."""
_BUN: Final = Wrapper(
    "bhiv", "cdlrFu", ("--config", "--cwd", "--filter", "--package"),
    ("--bun", "--watch", "--hot", "--smol", "--silent", "--if-present"),
    subcommands=("x", "run"), bare=True,
)  # fmt: skip
_RUN: Final = replace(_UVX, subcommands=("run",))
_CONDA: Final = Wrapper(
    "v", "np", ("--name", "--prefix", "--cwd"),
    ("--no-capture-output", "--live-stream", "--verbose"), subcommands=("run",),
)  # fmt: skip
_EXEC: Final = Wrapper(subcommands=("exec",))
_MISE: Final = Wrapper(
    "qvy", "CEj", ("--cd", "--env", "--jobs"), ("--raw", "--quiet"),
    subcommands=("exec", "x"), evals=("-c", "--command"), dashed=True,
)  # fmt: skip
_PIXI: Final = Wrapper(
    "qvx", "escpw",
    ("--environment", "--spec", "--channel", "--platform", "--with", "--manifest-path"),
    ("--frozen", "--locked", "--no-install", "--clean-env", "--skip-deps", "--as-is",
     "--force-reinstall", "--no-progress"),
    subcommands=("run", "exec", "x"),
)  # fmt: skip

RUNNERS: Final[Mapping[str, Wrapper]] = MappingProxyType(
    {
        **dict.fromkeys(("npx", "npx-cli.js", "bunx", "pnpx", "pnx"), _NPX),
        **dict.fromkeys(("npm", "npm-cli.js"), replace(_NPX, subcommands=("exec", "x"))),
        **dict.fromkeys(("pnpm", "yarn", "yarnpkg"), _PNPM),
        "workspace": Wrapper(operands=1),  # yarn workspace name x
        "corepack": Wrapper(),
        "bun": _BUN,
        "uvx": _UVX,
        "uv": replace(_UVX, subcommands=("run", "tool run"), modules=("-m", "--module")),
        **dict.fromkeys(("pipx", "poetry", "pipenv", "pdm", "rye"), _RUN),
        "hatch": replace(_RUN, scoped=True),
        **dict.fromkeys(("conda", "mamba", "micromamba"), _CONDA),
        "pixi": _PIXI,
        **dict.fromkeys(("mise", "rtx"), _MISE),
        **dict.fromkeys(
            ("asdf", "pyenv", "rbenv", "nodenv", "goenv", "jenv", "plenv", "phpenv", "bundle",
             "gem", "composer", "opam", "stack", "cabal"),
            _EXEC,
        ),
        "direnv": Wrapper(operands=1, subcommands=("exec",)),
        "volta": Wrapper(
            "", "", ("--node", "--npm", "--pnpm", "--yarn", "--env"), ("--bundled-npm",),
            subcommands=("run",),
        ),
        "fnm": Wrapper("", "", ("--using",), subcommands=("exec",)),
        "nvm": Wrapper(operands=1, subcommands=("exec",)),
    }
)  # fmt: skip
