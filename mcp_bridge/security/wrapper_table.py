"""Wrappers of all kinds, and how each reads its options: from their manual pages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mcp_bridge.security.runner_table import RUNNERS
from mcp_bridge.security.wrappers import Wrapper

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
        **RUNNERS,
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
