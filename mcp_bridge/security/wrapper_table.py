"""Wrappers and package runners, and how each reads its options: from their manual pages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mcp_bridge.security.wrappers import Wrapper

_SUDO: Final = Wrapper(
    "AbEeHiKklnPSsVv", "CDgHhpRrTtUu",
    ("--close-from", "--chdir", "--group", "--host", "--prompt", "--chroot", "--role", "--type",
     "--command-timeout", "--user", "--other-user"),
)  # fmt: skip
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


def _with(wrapper: Wrapper, *subcommands: str) -> Wrapper:
    return Wrapper(
        wrapper.flags, wrapper.valued, wrapper.long_valued, wrapper.long_flags,
        subcommands=subcommands, evals=wrapper.evals,
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
        "npx": _NPX,
        "npx-cli.js": _NPX,
        "bunx": _NPX,
        "pnpx": _NPX,
        "npm": _with(_NPX, "exec", "x"),
        "npm-cli.js": _with(_NPX, "exec", "x"),
        "pnpm": _with(_NPX, "exec", "dlx"),
        "yarn": _with(_NPX, "exec", "dlx"),
        "bun": _with(_NPX, "x"),
        "uvx": _UVX,
        "uv": _with(_UVX, "run", "tool run"),
        "pipx": _with(_UVX, "run"),
        "poetry": _with(_UVX, "run"),
        "pipenv": _with(_UVX, "run"),
        "pdm": _with(_UVX, "run"),
        "hatch": _with(_UVX, "run"),
        "rye": _with(_UVX, "run"),
        "conda": Wrapper("v", "np", ("--name", "--prefix", "--cwd"), subcommands=("run",)),
        "mamba": Wrapper("v", "np", ("--name", "--prefix", "--cwd"), subcommands=("run",)),
        "micromamba": Wrapper("v", "np", ("--name", "--prefix", "--cwd"), subcommands=("run",)),
        "mise": Wrapper(subcommands=("exec", "x")),
        "asdf": Wrapper(operands=1, subcommands=("exec",)),
        "direnv": Wrapper(operands=1, subcommands=("exec",)),
        "volta": Wrapper(subcommands=("run",)),
        "bundle": Wrapper(subcommands=("exec",)),
        "nix": Wrapper(evals=("-c", "--command"), subcommands=("shell", "develop")),
        "nix-shell": Wrapper("", "pIA", evals=("--run", "--command")),
        "dotenv": Wrapper("oc", "ef"),
        "op": Wrapper(subcommands=("run",)),
        "doppler": Wrapper(subcommands=("run",), evals=("--command",)),
    }
)  # fmt: skip
