"""Tells of wrappers of all kinds how each reads its options, from their manual pages.

The first table has those that run programs of packages, or of versions that are kept apart.
"""

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

_RUNNERS: Final[Mapping[str, Wrapper]] = MappingProxyType(
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

_SUDO: Final = Wrapper(
    "AbEeHiKklnPSsVv", "CDgHhpRrTtUu",
    ("--close-from", "--chdir", "--group", "--host", "--prompt", "--chroot", "--role", "--type",
     "--command-timeout", "--user", "--other-user"),
)  # fmt: skip

WRAPPERS: Final[Mapping[str, Wrapper]] = MappingProxyType(
    {
        "env": Wrapper(
            "i0v", "uCa", ("--unset", "--chdir", "--argv0"),
            ("--ignore-environment", "--null", "--debug"), split=("-S", "--split-string"),
        ),
        "nice": Wrapper("", "n", ("--adjustment",)),
        "ionice": Wrapper("t", "cnpPu", ("--class", "--classdata"), ("--ignore",)),
        "chrt": Wrapper("abfoirdmRv", "TPD", operands=1),
        "taskset": Wrapper("ac", "p", (), ("--all-tasks", "--cpu-list"), operands=1),
        "numactl": Wrapper("alsH", "iNmCpb"),
        "timeout": Wrapper(
            "fpv", "ks", ("--kill-after", "--signal"),
            ("--foreground", "--preserve-status", "--verbose"), operands=1,
        ),
        "time": Wrapper("apqvV", "fo", ("--format", "--output")),
        "nohup": Wrapper(),
        "setsid": Wrapper("cfw", "", (), ("--ctty", "--fork", "--wait")),
        "stdbuf": Wrapper("", "ioe", ("--input", "--output", "--error")),
        "unbuffer": Wrapper("p"),
        "xargs": Wrapper(
            "0oprtx", "adEIJLnPRsS",
            ("--arg-file", "--delimiter", "--replace", "--max-lines", "--max-args", "--max-procs",
             "--max-chars", "--process-slot-var"),
            ("--null", "--open-tty", "--interactive", "--no-run-if-empty", "--verbose", "--exit"),
        ),
        "sudo": _SUDO,
        "doas": Wrapper("Lns", "aCu"),
        "pkexec": Wrapper("", "", ("--user",), ("--disable-internal-agent", "--keep-cwd")),
        "su": Wrapper(
            "flmp", "gGsw", ("--group", "--supp-group", "--shell"), ("--login",),
            operands=1, evals=("-c", "--command", "--session-command"),
        ),
        "runuser": Wrapper(
            "flmp", "gGsuw", ("--group", "--shell", "--user"), ("--login",),
            evals=("-c", "--command", "--session-command"),
        ),
        "busybox": Wrapper(),
        "toybox": Wrapper(),
        "chroot": Wrapper("", "", ("--userspec", "--groups"), ("--skip-chdir",), operands=1),
        "unshare": Wrapper("imnpuUCTfrc", "RwSG", ("--root", "--wd", "--setuid", "--setgid")),
        "nsenter": Wrapper("aimnpuUCTrwFZe", "tSG", ("--target", "--setuid", "--setgid")),
        "setpriv": Wrapper(),
        "prlimit": Wrapper(),
        "setarch": Wrapper("BFILRSTXZ3v", ""),
        "linux": Wrapper(),  # linux32 and linux64, without their numbers
        "flock": Wrapper(
            "esxnuFov", "wE", ("--timeout", "--wait", "--conflict-exit-code"),
            ("--shared", "--exclusive", "--nonblock", "--close", "--no-fork"),
            operands=1, evals=("-c", "--command"),
        ),
        "script": Wrapper(
            "aefqr", "BIOTEmot", ("--log-io", "--log-out", "--log-in"), ("--quiet", "--flush"),
            operands=1, evals=("-c", "--command"),
        ),
        "watch": Wrapper("bcdegprtwx", "nq", ("--interval",), shell=True),
        "parallel": Wrapper(shell=True),
        "strace": Wrapper("cCdDfFhikqrtTvVwxyYzZ", "abeEIoOpPsSuUX"),
        "ltrace": Wrapper("bcCfhiLrStTV", "aADelnopsuxXF"),
        "valgrind": Wrapper(),
        "fakeroot": Wrapper(),
        "eatmydata": Wrapper(),
        "proxychains": Wrapper("q", "f"),
        "torsocks": Wrapper(),
        "firejail": Wrapper(),
        "bwrap": Wrapper(),
        "xvfb-run": Wrapper(),
        "dbus-run-session": Wrapper(),
        "systemd-run": Wrapper(),
        "systemd-inhibit": Wrapper(),
        "ssh-agent": Wrapper("cDdks", "aEOPt"),
        "rlwrap": Wrapper("acEhimnNrRuvwWX", "bCDefFgHlMopPqsStz"),
        "faketime": Wrapper("mf", "", operands=1),
        "cgexec": Wrapper("", "g", (), ("--sticky",)),
        "choom": Wrapper("", "n", ("--adjust",)),
        "chpst": Wrapper("vP012", "uUbenmdopfcrt/"),
        "cpulimit": Wrapper("zim", "plec"),
        "daemonize": Wrapper("av", "ceEopulP"),
        "proot": Wrapper("0", "rbmqwkv"),
        "runcon": Wrapper("c", "tulr"),
        "setuidgid": Wrapper(operands=1),
        "chronic": Wrapper("ve"),
        "caffeinate": Wrapper("disumw", "t"),
        "arch": Wrapper(),
        "tini": Wrapper("svwgh", "pe"),
        "dumb-init": Wrapper("cvh", "r"),
        "catatonit": Wrapper("gPLV"),
        "gosu": Wrapper(operands=1),
        "su-exec": Wrapper(operands=1),
        "exec": Wrapper("cl", "a"),
        "command": Wrapper("p"),
        "start": Wrapper(),
        "ld-linux-x86-64.so": Wrapper(),
        "ld-linux-aarch64.so": Wrapper(),
        "ld-musl-x86_64.so": Wrapper(),
        "ld.so": Wrapper(),
        **_RUNNERS,
        "nix": Wrapper(evals=("-c", "--command"), subcommands=("shell", "develop")),
        "nix-shell": Wrapper("", "pIA", evals=("--run", "--command")),
        "dotenv": Wrapper("oc", "ef"),
        "dotenvx": Wrapper("q", "fe", ("--env-file", "--env"), subcommands=("run",)),
        "cross-env": Wrapper(),
        "cross-env-shell": Wrapper(shell=True),
        "env-cmd": Wrapper("", "fr", ("--file", "--environments", "--rc-file")),
        "flatpak": Wrapper(evals=("--command",), subcommands=("run",)),
        "devbox": Wrapper("q", "ce", ("--config", "--env"), subcommands=("run",)),
        "honcho": Wrapper("", "edf", subcommands=("run",)),
        "foreman": Wrapper("", "edf", subcommands=("run",)),
        "op": Wrapper(subcommands=("run",)),
        "doppler": Wrapper(subcommands=("run",), evals=("--command",)),
    }
)  # fmt: skip
