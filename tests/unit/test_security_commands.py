"""What a configuration may start: attacks that must be refused, and servers that must not be."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ConfigError, ServerConfig, parse_servers
from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.server_config import ALLOWANCES
from mcp_bridge.security.commands import char_for_batch_file, judge
from mcp_bridge.security.interpreter_table import INTERPRETERS
from mcp_bridge.security.interpreters import first_code
from mcp_bridge.security.programs import plain_name
from mcp_bridge.security.wrapper_table import WRAPPERS
from mcp_bridge.security.wrappers import wrapped_commands
from mcp_bridge.transports.process import spawn


def verdicts(line: str, **options: bool) -> set[str]:
    command, *args = shlex.split(line)
    return {finding.allowance for finding in judge(command, args, **options)}


@pytest.mark.parametrize(
    "line",
    [
        "npx -c 'touch x'",
        "npx --call='touch x'",
        "npx --call touch",
        "npx -y -c x",
        "npm exec -c 'touch x'",
        "npm exec --script-shell=./evil x",
        "npm --prefix exec exec -c x",
        "node -e 1",
        "node --eval 1",
        "node --eval=1",
        "node -p 1",
        "node -pe 1",
        "node --print 1",
        "node -r ./evil.js server.js",
        "node --require=./evil.js server.js",
        "node --import ./evil.mjs server.js",
        "node --import=data:text/javascript,1 s.js",
        "node --loader ./evil.mjs s.js",
        "node --env-file=evil.env s.js",
        "node -",
        "node",
        "node -i",
        "node --inspect=0.0.0.0 s.js",
        "node --title a.js -e 1",
        "node --max-old-space-size=4096 -e 1",
        "node data:text/javascript,1",
        "nodejs -e 1",
        "tsx -e 1",
        "ts-node --eval 1",
        "python -c 1",
        "python3 -c1",
        "python3.13 -Sc 1",
        "python -Ic 1",
        "python -W ignore -c 1",
        "python -Wignore -c 1",
        "python -X dev -c 1",
        "python -",
        "python",
        "python -i server.py",
        "python -m timeit 1",
        "python -mpdb -c 1",
        "python -m code",
        "pypy3 -c 1",
        "perl -e 1",
        "perl -we 1",
        "perl -E 1",
        "perl -Mevil s.pl",
        "perl -nle 1",
        "perl",
        "ruby -e 1",
        "ruby -rsocket s.rb",
        "ruby -ne 1",
        "php -r 1",
        "php -dauto_prepend_file=x s",
        "lua -e 1",
        "lua -l evil s.lua",
        "deno eval 1",
        "deno run -",
        "deno repl",
        "deno run data:text/javascript,1",
        "bun -e 1",
        "bun --eval=1",
        "bun run -",
        "bun -p 1",
        "bun --preload ./evil.ts s.ts",
        "bun exec 'touch x'",
        "java -javaagent:evil.jar -jar s.jar",
        "java -XX:OnError=evil -jar s.jar",
        "julia -e 1",
        "Rscript -e 1",
        "osascript -e 1",
        "elixir --eval 1",
        "uvx python -c 1",
        "uvx --from evil python -c 1",
        "uv run python -c 1",
        "uv run --with evil python3 -c 1",
        "uv tool run python -c 1",
        "pipx run python -c 1",
        "npx -y node -e 1",
        "npx -p node@22 node -e 1",
        "npx node@22 -e 1",
        "bunx node -e 1",
        "poetry run python -c 1",
        "conda run -n base python -c 1",
        "mise exec -- node -e 1",
        "su root -c 'touch x'",
        "flock /tmp/l -c 'touch x'",
        "script -c 'touch x' /dev/null",
    ],
)
def test_code_among_the_arguments_is_refused(line: str) -> None:
    assert "eval" in verdicts(line)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "pwsh", "powershell.exe"])
@pytest.mark.parametrize("flags", ["-c", "-ec", "-lic", "-c -x"])
def test_a_shell_is_refused_with_and_without_its_flag(shell: str, flags: str) -> None:
    if "p" in shell[:1] or shell == "fish":
        flags = "-c"
    assert {"command", "eval"} <= verdicts(f"{shell} {flags} 'touch x'")
    assert "command" in verdicts(f"{shell} ./server")


@pytest.mark.parametrize(
    "flag",
    [
        "-Command",
        "-command",
        "-c",
        "-com",
        "-EncodedCommand",
        "-enc",
        "-ec",
        "-e",
        "-CommandWithArgs",
        "-noexit",
    ],
)
def test_powershell_shortens_its_flags(flag: str) -> None:
    assert "eval" in verdicts(f"pwsh -NoProfile -ExecutionPolicy Bypass {flag} x")
    assert "eval" not in verdicts("pwsh -NoProfile -File server.ps1 -Command x")
    assert "eval" in verdicts("powershell Get-Item")


@pytest.mark.parametrize(
    "wrapped",
    [
        "env {}",
        "env -i {}",
        "env A=b {}",
        "env -u HOME {}",
        "env -uHOME {}",
        "env -C / {}",
        "env --unset=HOME {}",
        "env --unset HOME {}",
        "env --uns HOME {}",
        "env -- {}",
        "env --weird HOME {}",
        "/usr/bin/env {}",
        "nice {}",
        "nice -n 5 {}",
        "nice -n5 {}",
        "nice --adjustment=5 {}",
        "ionice -c 2 -n 7 {}",
        "timeout 5 {}",
        "timeout -k 1 -s KILL 5 {}",
        "timeout --signal=KILL --foreground 5 {}",
        "nohup {}",
        "setsid {}",
        "setsid -w {}",
        "stdbuf -oL {}",
        "stdbuf -o L -e0 {}",
        "stdbuf --output=L {}",
        "xargs {}",
        "xargs -n 1 {}",
        "xargs -I R {}",
        "sudo {}",
        "sudo -n -u bob {}",
        "sudo -E A=b {}",
        "doas -u bob {}",
        "busybox {}",
        "toybox {}",
        "time -p {}",
        "taskset -c 0 {}",
        "taskset 0x1 {}",
        "chrt -b 0 {}",
        "strace -f -o /dev/null {}",
        "unshare -r {}",
        "setpriv --no-new-privs {}",
        "flock /tmp/l {}",
        "chroot / {}",
        "tini -- {}",
        "dumb-init {}",
        "npx {}",
        "npx -y -- {}",
        "npm exec -- {}",
        "pnpm dlx {}",
        "yarn exec {}",
        "uvx {}",
        "uv run {}",
        "uv run -- {}",
        "poetry run {}",
        "direnv exec . {}",
        "env nice timeout 5 setsid {}",
        "watch -n 1 {}",
        "systemd-run --user --pty {}",
        "/lib64/ld-linux-x86-64.so.2 {}",
        "firejail --quiet {}",
    ],
)
@pytest.mark.parametrize("hidden", ["bash -c x", "sh x", "python3 -c x", "/bin/rm -rf x"])
def test_what_is_behind_a_wrapper_is_judged(wrapped: str, hidden: str) -> None:
    found = verdicts(wrapped.format(hidden))
    assert ("eval" if hidden.startswith("python") else "command") in found


def test_env_splits_what_it_is_given() -> None:
    for line in (
        "env -S 'bash -c x'",
        "env -S'python -c x'",
        "env --split-string='node -e 1'",
        "env -vS 'perl -e 1'",
        "env -iS 'A=b ruby -e 1'",
        "env -S node -e 1",
    ):
        assert verdicts(line) & {"command", "eval"}, line
    assert verdicts("env -S 'A=b my-server' --flag") == set()


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-filesystem /home/me/docs",
        "npx -y @scope/tool@1.2.3 -c config.json -e production",
        "npx --yes --package=@scope/pkg the-bin --call me",
        "npx -p @scope/pkg the-bin -c x",
        "node server.js -e production -c config.json",
        "node --enable-source-maps dist/index.js -p 80",
        "node --max-old-space-size=4096 --no-warnings server.mjs --eval 1",
        "node -C production server.js",
        "python -m mcp_server_time --local-timezone Europe/Berlin",
        "python -u -m server -c config.toml",
        "python3 server.py -c config.toml -i",
        "python -W ignore -X utf8 server.py -m x",
        "uvx mcp-server-git --repository /srv/x",
        "uvx --from git+https://example.org/x the-server -c y",
        "uv run server.py -c x",
        "uv --directory /srv/x run server.py",
        "uv run --with mcp mcp run server.py",
        "uvx --python 3.12 some-server",
        "deno run -A server.ts",
        "deno run --allow-net jsr:@a/b -e x",
        "bun run server.ts -e 1",
        "bun server.ts",
        "bunx some-server -e 1",
        "bun x some-server",
        "docker run -i --rm -e TOKEN mcp/github",
        "java -Xmx1g -jar server.jar -e x",
        "java -cp a:b com.example.Server",
        "perl -w -I lib server.pl -e x",
        "ruby -I lib server.rb -e x",
        "php -c php.ini server.php -r x",
        "env A=b my-server",
        "nice -n 5 node server.js -e x",
        "timeout 5 node server.js",
        "stdbuf -oL python server.py -c x",
        "my-server -c 'a; b' -e x",
        "/opt/tool/start.sh --all",
        "xvfb-run my-server",
        "dotnet run --project x",
        "go run ./server",
        "mise exec -- my-server",
        "poetry run my-server",
        "taskset -c 0 my-server",
        "cargo run -e x",
        "./run 'a|b' '$(x)' 'c\nd'",
        "npm start",
        "npm run mcp -- -c x",
        "pnpm dlx some-server -c x",
    ],
)
def test_ordinary_servers_pass(line: str) -> None:
    assert verdicts(line) == set()


def link(folder: Path, name: str, to: str | Path) -> str:
    (folder / name).symlink_to(to)
    return str(folder / name)


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_links_are_followed_by_name_at_each_step(tmp_path: Path) -> None:
    bash = program(tmp_path, "bash")
    first = link(tmp_path, "first", bash)
    innocent = link(tmp_path, "innocent", "first")  # relative, through another
    assert first != innocent
    assert "command" in verdicts(f"{innocent} x")
    assert "command" in verdicts(f"env {innocent} x")
    applet = link(tmp_path, "sh", program(tmp_path, "some-box"))
    assert "command" in verdicts(applet), "a program may look at the name that it is called by"
    context = link(tmp_path, "helper", program(tmp_path, "busybox"))
    assert "command" in verdicts(f"{context} sh -c x")
    python = link(tmp_path, "server", sys.executable)
    assert "eval" in verdicts(f"{python} -c 1")
    assert verdicts(f"{python} server.py") == set()


def test_a_link_in_the_search_path_is_found(tmp_path: Path) -> None:
    link(tmp_path, "tool", program(tmp_path, "zsh"))
    found = judge("tool", ["x"], search_path=str(tmp_path))
    assert {finding.allowance for finding in found} == {"command"}
    assert list(judge("tool", ["x"], search_path="/nowhere")) == []


def test_a_link_in_a_circle_and_a_name_of_nonsense_end(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.symlink_to(b)
    b.symlink_to(a)
    assert verdicts(f"{a} x") == set()
    for name in ("", " ", "~nobody-at-all/x", "/", ".", "..", "-"):
        list(judge(name, []))


def test_names_lose_folder_case_ending_and_version() -> None:
    for name in ("/usr/bin/python3.13t", "C:\\Py\\PYTHON.EXE", "python@3.12", "python-3", "python"):
        assert plain_name(name) == "python"
    assert plain_name("7z") == "7z"
    assert plain_name("@scope/pkg@1.0") == "pkg"
    assert verdicts("BASH x") == {"command"}


def test_wrappers_in_one_another_end_somewhere() -> None:
    assert verdicts("env " * 40 + "my-server") == {"command"}


def test_variables_that_a_wrapper_sets_are_judged() -> None:
    assert verdicts("env NODE_OPTIONS=--require=./x.js node s.js") == {"env"}
    assert verdicts("env -S 'LD_PRELOAD=./x.so my-server'") == {"env"}
    assert "env" in verdicts("sudo BASH_ENV=x my-server")
    assert verdicts("env LOG=debug node s.js") == set()


@pytest.mark.parametrize(
    "command", ["a; b", "a && b", "a | b", "$(x)", "`x`", "a > b", "a\nb", 'a"b']
)
def test_a_command_that_is_a_line_for_a_shell_is_refused(command: str) -> None:
    assert any(f.allowance == "metacharacters" for f in judge(command, []))


def test_arguments_are_read_by_a_shell_in_few_places_only() -> None:
    assert "metacharacters" in verdicts("watch my-server '$(x)'")
    assert "metacharacters" in verdicts("parallel my-server ';' x")
    assert verdicts("my-server '$(x)' 'a & b'") == set()


@pytest.mark.parametrize("bad", ["a&calc", "%COMSPEC%", 'a" & calc', "a|b", "a^b", "a>b", "a\r\nb"])
def test_a_batch_file_gets_nothing_that_cmd_reads(bad: str) -> None:
    for program_ in ("C:\\x\\npx.CMD", "x.bat", "x.cmd. "):
        assert char_for_batch_file(program_, [bad])
    assert not char_for_batch_file("C:\\x\\node.exe", [bad])
    assert any(f.allowance == "metacharacters" for f in judge("npx.cmd", ["-y", bad], windows=True))


@given(st.sampled_from(sorted(INTERPRETERS)), st.lists(st.text("-ecrpmX=a./ :", max_size=6)))
def test_any_arguments_are_judged_without_an_error(name: str, args: list[str]) -> None:
    first_code(INTERPRETERS[name], args)
    list(judge(name, args))


@given(st.sampled_from(sorted(WRAPPERS)), st.lists(st.text("-abcnS=A/ '\"", max_size=6)))
def test_any_wrapper_is_read_to_its_end(name: str, args: list[str]) -> None:
    list(wrapped_commands(WRAPPERS[name], args))
    list(judge(name, args))


@given(
    st.lists(
        st.sampled_from(
            ["env", "nice", "timeout 5", "nohup", "setsid", "stdbuf -oL", "env A=b", "nice -n 3"]
        ),
        max_size=6,
    )
)
def test_no_pile_of_wrappers_hides_a_shell(pile: list[str]) -> None:
    assert "command" in verdicts(" ".join([*pile, "bash", "x"]))
    assert verdicts(" ".join([*pile, "my-server", "x"])) == set()


# In the file.

ATTACKS = {
    "eval": (
        {"command": "node", "args": ["-e", "1"]},
        "a.args: node is given code to run (-e); name",
    ),
    "command": (
        {"command": "bash", "args": ["x"]},
        "a.command: bash is a shell; start the program",
    ),
    "env": (
        {"command": "node", "args": ["s.js"], "env": {"NODE_OPTIONS": "-r x"}},
        "a.env.NODE_OPTIONS: makes programs run other code than their own; remove it",
    ),
    "metacharacters": (
        {"command": "serve;x"},
        "a.command: holds ';', and no shell reads it; write",
    ),
    "http": ({"url": "http://example.com/mcp"}, "a.url: http:// goes over the network unencrypted"),
}


@pytest.mark.parametrize("allowance", ALLOWANCES)
def test_the_file_names_the_place_the_mend_and_the_way_out(allowance: str) -> None:
    entry, said = ATTACKS[allowance]
    with pytest.raises(ConfigError) as caught:
        parse_servers(json.dumps({"a": entry}, indent=1), file="servers.json", environ={})
    assert said in str(caught.value)
    assert f'or write "allow": ["{allowance}"]' in str(caught.value)
    assert str(caught.value).startswith("servers.json:")
    assert caught.value.line > 1
    (config,) = parse_servers(json.dumps({"a": {**entry, "allow": [allowance]}}), environ={})
    assert config.allow == {allowance}
    others = [word for word in ALLOWANCES if word != allowance]
    with pytest.raises(ConfigError):
        parse_servers(json.dumps({"a": {**entry, "allow": others}}), environ={})


def test_a_server_that_is_off_is_not_judged() -> None:
    (config,) = parse_servers('{"a": {"command": "bash", "enabled": false}}')
    assert not config.enabled


def test_a_word_that_allows_nothing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"a\.allow\.0: 'all' allows nothing; use command, eval"):
        parse_servers('{"a": {"command": "x", "allow": ["all"]}}')


def test_what_a_variable_brings_is_judged_as_well() -> None:
    with pytest.raises(ConfigError, match="bash is a shell"):
        parse_servers('{"a": {"command": "${RUN}"}}', environ={"RUN": "bash"})
    with pytest.raises(ConfigError, match="is given code"):
        parse_servers('{"a": {"command": "node", "args": ["${X}"]}}', environ={"X": "-e"})


async def test_a_link_that_changes_after_the_file_was_read_starts_nothing(tmp_path: Path) -> None:
    fine = program(tmp_path, "fine")
    tool = tmp_path / "tool"
    tool.symlink_to(fine)
    (config,) = parse_servers(json.dumps({"a": {"command": str(tool), "args": ["x"]}}))
    tool.unlink()
    tool.symlink_to(program(tmp_path, "bash"))
    with pytest.raises(ServerUnavailable, match="bash is a shell"):
        await spawn(config)


async def test_a_configuration_made_by_hand_is_judged_before_it_starts(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    config = ServerConfig(name="a", command="sh", args=("-c", f"touch {proof}"))
    with pytest.raises(ServerUnavailable, match="sh is a shell"):
        await spawn(config)
    assert not proof.exists()
