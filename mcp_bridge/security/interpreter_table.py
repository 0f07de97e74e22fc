"""Interpreters, and which of their options bring code: from their manual pages and `--help`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from mcp_bridge.security.interpreter import Interpreter
from mcp_bridge.security.javascript_table import BUN, DENO, NODE, NODEMON, TS
from mcp_bridge.security.python_modules import TAKE_CODE

_PYTHON: Final = Interpreter(
    "ci", (), "WX", ("--check-hash-based-pycs",), flags="bBdEhIOPqRsSuvVx?t3",
    long_flags=("--help*", "--version"), settings=("pycache_prefix", "presite"),
    module="m", modules=TAKE_CODE, words=("-",),
)  # fmt: skip
_SHELL: Final = Interpreter(
    "cis", ("--command", "--init-command", "--init-file", "--rcfile", "--interactive"), "oO",
    ("--features", "--profile"), flags="abefhklmnprtuvxBCDEHPT",
    long_flags=("--no*", "--login", "--posix", "--restricted", "--private", "--verbose"),
    words=("-",),
)  # fmt: skip
_POWERSHELL: Final = Interpreter(
    longs=("-command", "-c", "-commandwithargs", "-cwa", "-encodedcommand", "-e", "-ec",
           "-encodedarguments", "-interactive", "-noexit"),
    long_valued=("-executionpolicy", "-ex", "-ep", "-windowstyle", "-w", "-inputformat",
                 "-outputformat", "-workingdirectory", "-wd", "-configurationname",
                 "-configurationfile", "-custompipename", "-settingsfile", "-version"),
    long_flags=("-noprofile", "-nologo", "-noninteractive", "-noprofileloadtime", "-login", "-mta",
                "-sta", "-sshservermode"),
    script="f", words=("-",), loose=True,
)  # fmt: skip
# The value of -F becomes part of the program.
_PERL: Final = Interpreter(
    "eEMmdxF", (), "I", joined="CDV", flags="acfhlnpisStTuUvwWX0123456789?", words=("-",)
)
_RUBY: Final = Interpreter(
    "er", ("--require", "--eval"), "ICEF",
    ("--encoding", "--external-encoding", "--internal-encoding", "--disable", "--enable", "--dump",
     "--backtrace-limit", "--parser"),
    joined="KWTx", flags="acdhilnpsSUvVwy0123456789",
    long_flags=("--disable-*", "--enable-*", "--jit*", "--yjit*", "--rjit*", "--verbose",
                "--version", "--copyright", "--debug", "--help"),
    words=("-",),
)  # fmt: skip
_PHP: Final = Interpreter(
    "rRBEadzF",
    ("--run", "--process-begin", "--process-code", "--process-end", "--process-file",
     "--interactive", "--define", "--zend-extension"),
    "cSt", ("--php-ini", "--server", "--docroot"), flags="ehilmnqsvw", script="f",
    scripts=("--file",), long_flags=("--no-*", "--syntax-check", "--timing"), words=("-",),
)  # fmt: skip
_JAVA: Final = Interpreter(
    longs=("-javaagent", "-agentlib", "-agentpath", "-XX:OnError", "-XX:OnOutOfMemoryError",
           "-Xbootclasspath/a", "-XX:Flags", "-XX:VMOptionsFile", "--patch-module"),
    long_valued=("-cp", "-classpath", "--class-path", "-p", "--module-path",
                 "--upgrade-module-path", "--add-modules", "--add-reads", "--add-exports",
                 "--add-opens", "--limit-modules", "--source", "--enable-native-access"),
    joined="XDdevsc", scripts=("-jar", "-m", "--module"),
    long_flags=("--enable-preview", "--show-version", "--dry-run", "--version", "--help"),
    stdin=False,
)  # fmt: skip
_EVALS: Final = Interpreter("e", ("--eval",), stdin=False)

INTERPRETERS: Final[Mapping[str, Interpreter]] = MappingProxyType(
    {
        **dict.fromkeys(("node", "nodejs", "iojs", "electron"), NODE),
        **dict.fromkeys(
            ("tsx", "ts-node", "ts-node-esm", "jiti", "esno", "vite-node", "babel-node",
             "swc-node"),
            TS,
        ),
        "nodemon": NODEMON,
        "bun": BUN,
        "deno": DENO,
        **dict.fromkeys(("python", "pythonw", "pypy", "py", "micropython"), _PYTHON),
        "ipython": replace(
            _PYTHON,
            longs=("--code-to-run", "--ext", "--InteractiveShellApp.code-to-run",
                   "--InteractiveShellApp.exec-lines", "--InteractiveShellApp.exec-files",
                   "--InteractiveShellApp.extensions"),
        ),
        **dict.fromkeys(("bpython", "ptpython", "ptipython", "hy"), replace(_PYTHON, stdin=False)),
        **dict.fromkeys(
            ("sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "ash",
             "hush", "nu", "elvish", "xonsh", "yash"),
            _SHELL,
        ),
        **dict.fromkeys(("pwsh", "powershell", "pwsh-preview"), _POWERSHELL),
        "perl": _PERL,
        **dict.fromkeys(("ruby", "jruby", "irb"), _RUBY),
        **dict.fromkeys(("php", "php-cgi"), _PHP),
        **dict.fromkeys(("lua", "luajit"), Interpreter("eli", flags="EvW", words=("-",))),
        "rscript": Interpreter("e", (), stdin=False),
        "r": Interpreter("ef", ("--eval", "--file", "--args"), stdin=True),
        "julia": Interpreter(
            "eELJ", ("--eval", "--print", "--load", "--sysimage"), "ptHC",
            ("--threads", "--procs", "--machine-file", "--cpu-target", "--gcthreads", "--home"),
            joined="Og", flags="iqvh", long_flags=("--project", "--quiet"), words=("-",),
        ),
        "elixir": Interpreter("er", ("--eval", "--rpc-eval", "--erl", "--require"), "S"),
        "erl": Interpreter(longs=("-eval", "-run", "-s"), stdin=False, mixed=True),
        "groovy": Interpreter("e", (), "cD", ("-cp", "-classpath", "--classpath")),
        "osascript": Interpreter("e", (), "ls", words=("-",)),
        "tclsh": Interpreter(words=("-",)),
        "expect": Interpreter("c", script="f", flags="bdinNv", words=("-",)),
        "guile": Interpreter("cle", ("--eval",), "LCx", script="s"),
        "racket": Interpreter("efr", ("--eval", "--load", "--require")),
        "sbcl": Interpreter(longs=("--eval", "--load"), long_valued=("--core",)),
        "clojure": Interpreter("eM", ("--eval",), stdin=False),
        **dict.fromkeys(
            ("scala", "kotlin", "swift", "ocaml", "ghc", "qjs", "zx", "coffee"), _EVALS
        ),
        "octave": Interpreter("", ("--eval",), stdin=False),
        "java": _JAVA,
        "npm": Interpreter(
            "c", ("--call", "--script-shell", "--node-options", "--userconfig", "--globalconfig"),
            words=("explore",), stdin=False, mixed=True,
        ),
        "make": Interpreter("E", ("--eval",), stdin=False, mixed=True, assigns=True),
        "gdb": Interpreter("x", ("-ex", "-iex", "--eval-command", "--command"), mixed=True),
        "git": Interpreter("c", ("--exec-path", "--config-env"), "C", stdin=False),
        "go": Interpreter(
            "", ("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"), "",
            ("-C", "-mod", "-tags", "-ldflags", "-gcflags", "-p", "-o", "-modfile"),
            runs=("run", "test", "tool", "vet", "build", "install", "generate"), stdin=False,
        ),
        "cargo": Interpreter(
            "", ("--config",), "pFjC",
            ("--bin", "--example", "--package", "--features", "--manifest-path", "--target",
             "--target-dir", "--profile"),
            flags="qrv", stdin=False, mixed=True,
            long_flags=("--no-*", "--all-features", "--frozen", "--locked", "--offline", "--quiet",
                        "--release", "--verbose"),
        ),
    }
)  # fmt: skip
