"""Ways context the judge: options that it does not know, programs behind programs, variables."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ServerConfig
from mcp_bridge.security.environment import loads_code
from mcp_bridge.security.interpreter_table import INTERPRETERS
from mcp_bridge.security.interpreters import first_code
from mcp_bridge.security.policy import objections


def verdicts(line: str) -> set[str]:
    command, *args = shlex.split(line)
    config = ServerConfig(name="s", command=command, args=tuple(args))
    return {finding.allowance for finding in objections(config)}


@pytest.mark.parametrize(
    "line",
    [
        "node --use-largepages off --eval 1",
        "node --use-largepages off -e 1",
        "node --security-revert x -e 1",
        "node --test-coverage-lines 80 -e 1",
        "node --some-new-option x -e 1",
        "node --some-new-option x --other y --require ./evil.js s.js",
        "node --title -e 1",
        "tsx --some-new-option x -e 1",
        "bun --some-new-option x -e 1",
        "deno run --some-new-option x -",
        "ruby --disable gems -e 1",
        "ruby --some-new-option x -e 1",
        "ruby -W -e 1",
        "julia --threads 4 -e 1",
        "julia --some-new-option 4 --eval 1",
        "php --some-new-option x -r 1",
        "lua -Z x -e 1",
        "groovy -cp lib -e 1",
        "java --some-new-option x -javaagent:evil.jar -jar s.jar",
        "pwsh -SomeNewOption x.ps1 -Command y",
        "elixir --sname x --eval 1",
    ],
)
def test_the_value_of_an_option_is_not_taken_for_the_script(line: str) -> None:
    assert "eval" in verdicts(line)


@pytest.mark.parametrize(
    "line",
    [
        "node --experimental_loader=data:text/javascript,1 s.js",
        "node --experimental_loader ./evil.mjs s.js",
        "node --env_file=evil.env s.js",
        "node --env_file_if_exists evil.env s.js",
        "tsx --env_file=evil.env s.ts",
        "make --eva='$(shell x)'",
        "npm start --script-sh=./evil",
    ],
)
def test_an_option_is_known_in_its_other_spellings(line: str) -> None:
    assert "eval" in verdicts(line)


@pytest.mark.parametrize(
    "line",
    [
        "perl '-F,0;system(q(x));#' s.pl",
        "perl '-nF/,0;system(q(x));#' s.pl",
        "julia -J evil.so s.jl",
        "python -X pycache_prefix=/evil s.py",
        "python -Xpycache_prefix=/evil s.py",
        "python3 /dev/stdin",
        "node /dev/fd/0",
        "make --eval='$(shell x)'",
        "make -E '$(shell x)'",
        "make run --eval '$(shell x)'",
        "make 'X:=$(shell x)'",
        "make 'X!=touch x'",
        "make run SHELL=./evil",
        "make -f /dev/stdin",
        "nodemon --exec 'sh -c x'",
        "nodemon s.js -x 'sh -c x'",
        "npx -y nodemon -x 'sh -c x'",
        "deno task --eval x",
        "go run -exec 'sh -c x' .",
        "go run -exec=evil .",
        "cargo run --config 'target.x.runner=\"sh\"'",
        "npm explore x -- sh -c x",
        "npm -c 'touch x' exec",
        "npm start --script-shell ./evil",
        "git -c alias.x='!sh' x",
    ],
)
def test_options_that_bring_code_are_refused(line: str) -> None:
    assert "eval" in verdicts(line)


@pytest.mark.parametrize("python", ["python -m", "python3 -I -m", "uv run -m", "uv run --module"])
@pytest.mark.parametrize(
    "module",
    [
        "timeit -n1 1",
        "pdb -c 1 s.py",
        "code",
        "trace --count s.py",
        "cProfile s.py",
        "runpy x",
        "coverage run s.py",
        "fire os system x",
        "IPython -c 1",
        "uv run python -c 1",
        "uv run -m timeit 1",
        "pipx run python -c 1",
        "python -c 1",
    ],
)
def test_a_module_is_judged_as_the_program_of_its_name(python: str, module: str) -> None:
    assert "eval" in verdicts(f"{python} {module}")


@pytest.mark.parametrize(
    "wrapped",
    [
        "python3 -m uv run {}",
        "python -m uv tool run {}",
        "python -m poetry run {}",
        "uv run --module pipenv run {}",
        "bun run {}",
        "bun run --bun {}",
        "bun x {}",
        "bun {}",
        "pnpm {}",
        "pnpm exec {}",
        "pnpm dlx {}",
        "pnpm --dir /srv exec {}",
        "pnpm --filter api {}",
        "yarn {}",
        "yarn run {}",
        "yarn exec {}",
        "yarn dlx {}",
        "yarn workspace api {}",
        "corepack pnpm exec {}",
        "corepack yarn@4 dlx {}",
        "npx cross-env A=b {}",
        "npx -y env-cmd -f x {}",
        "npx dotenvx run -- {}",
        "pyenv exec {}",
        "rbenv exec {}",
        "nodenv exec {}",
        "asdf exec {}",
        "mise exec -- {}",
        "mise x python@3.12 -- {}",
        "mise exec --some-new-option node@22 -- {}",
        "volta run {}",
        "volta run --node 22 {}",
        "fnm exec --using 22 {}",
        "pixi run {}",
        "pixi run -e dev {}",
        "pixi exec -s python {}",
        "conda run -n base --no-capture-output {}",
        "micromamba run -p /x {}",
        "poetry run {}",
        "pdm run {}",
        "hatch run {}",
        "hatch run test:{}",
        "hatch -e dev run {}",
        "rye run {}",
        "pipx run {}",
        "pipx run --spec x {}",
        "pipenv run {}",
        "bundle exec {}",
        "gem exec {}",
        "composer exec {}",
        "rlwrap {}",
        "faketime yesterday {}",
    ],
)
@pytest.mark.parametrize("hidden", ["sh -c x", "python3 -c x", "node -e x"])
def test_what_a_runner_runs_is_judged(wrapped: str, hidden: str) -> None:
    found = verdicts(wrapped.format(hidden))
    assert ("command" if hidden.startswith("sh") else "eval") in found


def test_a_line_for_a_shell_and_a_variable_are_found_behind_runners() -> None:
    assert "eval" in verdicts("mise exec -c 'touch x'")
    assert "eval" in verdicts("pnpm exec --shell-mode 'touch x'")
    assert "env" in verdicts("npx cross-env NODE_OPTIONS=--require=/x.js node s.js")
    assert "env" in verdicts("env HOME=/x python s.py")
    assert "command" in verdicts("uvx watchfiles 'sh -c x'")
    assert "command" in verdicts("npx concurrently 'sh -c x'")
    assert verdicts("python -m uv " + "run python -m uv " * 20 + "run x") == {"command"}


def test_many_runners_in_one_another_are_judged_without_doubling_at_each_word() -> None:
    assert "command" in verdicts("pnpm exec " * 60 + "sh -c x")
    assert "eval" in verdicts("node " + "--some-new-option x " * 60 + "-e x")


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-filesystem /data",
        "npx -y mcp-remote https://example.org/mcp --header 'Authorization: Bearer x'",
        "npx -y tsx server.ts -e production",
        "npx cross-env NODE_ENV=production node server.js -e x",
        "npm --prefix /srv start",
        "npm start --prefix /srv -- -c x",
        "uvx mcp-server-time --local-timezone Europe/Berlin",
        "uv run --directory /srv server.py",
        "uv --directory /srv run server",
        "uv run -m my_server -c config.toml",
        "uv run --module my_server.main --port 3000",
        "uv run --python 3.12 --with mcp mcp run server.py",
        "python -m mcp_server_git --repository .",
        "python -m my_server.sh -c config.toml",
        "python -m server run -c config.toml",
        "python -m format x",
        "python -u server.py",
        "python -X utf8 -u -m my_server -c config.toml",
        "node build/index.js --port 3000",
        "node --max-old-space-size=4096 build/index.js",
        "node --experimental-strip-types --no-deprecation server.ts -e x",
        "node --stack-size=2000 --expose-gc server.js -p 80",
        "tsx watch --tsconfig x.json server.ts -e x",
        "nodemon -w src server.js",
        "docker run -i --rm -e KEY image",
        "bunx server",
        "bun --watch run server.ts -e 1",
        "bun run --cwd /srv start -e x",
        "deno run --allow-net server.ts",
        "deno run -A --unstable-kv --allow-env=HOME server.ts -e x",
        "deno run -r --no-check npm:server --eval x",
        "deno task start --eval x",
        "java -jar server.jar",
        "java -Dx=y -Xmx512m -ea --enable-preview -jar server.jar -javaagent",
        "java -cp a:b -XX:+UseZGC com.example.Server",
        "dotnet run --project X",
        "dotnet run --project X -- --config x",
        "pnpm dlx pkg",
        "pnpm --filter api run mcp -e x",
        "pnpm start",
        "yarn dlx pkg",
        "yarn --cwd /srv start -e x",
        "yarn workspace api start",
        "corepack pnpm start",
        "poetry run python -m my_server",
        "poetry -C /srv run my-server",
        "hatch run dev:serve -c x",
        "pixi run serve",
        "mise exec node@22 -- node server.js -e x",
        "mise run mcp -- -c x",
        "conda run -n base --no-capture-output python server.py -c x",
        "pyenv exec python server.py -c x",
        "ruby --yjit -W0 server.rb -e x",
        "ruby --disable=gems -Ku server.rb -e x",
        "perl -T -CS -Ilib server.pl -e x",
        "php artisan mcp:serve -r x",
        "php -q -f server.php",
        "julia --project=. -t 4 server.jl -e x",
        "go run ./server -exec x",
        "go run -tags x -race example.org/x@latest -config y",
        "cargo run --release -- --config x",
        "make -C /srv run PORT=3000",
    ],
)
def test_ordinary_servers_still_pass(line: str) -> None:
    assert verdicts(line) == set()


@given(
    st.sampled_from(["node", "ruby", "php", "julia", "bun", "deno"]),
    st.from_regex(r"--zz[a-z]{1,8}", fullmatch=True),
    st.from_regex(r"zz[a-z0-9]{1,8}", fullmatch=True),
)
def test_no_unknown_option_hides_what_follows_its_value(name: str, option: str, value: str) -> None:
    interpreter = INTERPRETERS[name]
    code = next(iter(interpreter.longs))
    assert first_code(interpreter, [option, value, code, "x"]) == code
    assert first_code(interpreter, [option, value]) is None, "it may be a flag before a script"


# Variables.

LOADING = """
HOME USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA XDG_CONFIG_HOME XDG_CONFIG_DIRS
XDG_DATA_HOME XDG_CACHE_HOME PREFIX SYSTEMROOT PATH Path home
GIT_DIR GIT_COMMON_DIR GIT_WORK_TREE GIT_CONFIG_GLOBAL GIT_CONFIG_COUNT GIT_CONFIG_KEY_0
GIT_EXEC_PATH GIT_SSH GIT_SSH_COMMAND GIT_ATTR_SOURCE GIT_ALLOW_PROTOCOL HGRCPATH SVN_SSH
NODE_OPTIONS NODE_PATH NODE_COMPILE_CACHE NODE_CONFIG_DIR TS_NODE_COMPILER TS_NODE_PROJECT
ESBUILD_BINARY_PATH ELECTRON_RUN_AS_NODE npm_config_script_shell npm_execpath COREPACK_HOME
PYTHONPATH PYTHONUSERBASE PYTHONSTARTUP VIRTUAL_ENV PYENV_ROOT CONDA_EXE IPYTHONDIR
COVERAGE_PROCESS_START UV_INDEX_URL UV_CACHE_DIR UV_TOOL_DIR UV_PROJECT_ENVIRONMENT
PIPX_HOME POETRY_CONFIG_DIR
PERL5OPT PERLIO RUBYOPT RUBYGEMS_GEMDEPS IRBRC RBENV_ROOT PHPRC COMPOSER_HOME LUA_INIT
LUA_PATH_5_4
JAVA_TOOL_OPTIONS _JAVA_OPTIONS IBM_JAVA_OPTIONS JAVA_HOME CLASSPATH GRADLE_OPTS
DOTNET_STARTUP_HOOKS DOTNET_ROOT DOTNET_GCName NUGET_PACKAGES MSBuildSDKsPath
CustomBeforeMicrosoftCommonProps ASPNETCORE_HOSTINGSTARTUPASSEMBLIES
GOENV GOFLAGS GOPATH GOCACHEPROG GOAUTH CGO_CFLAGS
DENO_DIR BUN_INSTALL BASH_ENV BASH_FUNC_x%% BASH_LOADABLES_PATH ENV FPATH INPUTRC
LD_PRELOAD DYLD_INSERT_LIBRARIES GLIBC_TUNABLES MAKEFILES CC CFLAGS
EDITOR PAGER LESS TAR_OPTIONS RIPGREP_CONFIG_PATH SSH_ASKPASS_REQUIRE
"""
ORDINARY = """
OPENAI_API_KEY GITHUB_PERSONAL_ACCESS_TOKEN GOOGLE_API_KEY GOOGLE_APPLICATION_CREDENTIALS
NPM_TOKEN GIT_TOKEN GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_TERMINAL_PROMPT JUPYTER_TOKEN
SSH_HOST SSH_AUTH_SOCK HOMEASSISTANT_URL HOME_ASSISTANT_TOKEN PATHS DATA_DIR CONFIG_PATH
TZ LANG LC_ALL NO_COLOR FORCE_COLOR NODE_ENV DEBUG LOG_LEVEL PORT HOST CI TERM TMPDIR
HTTP_PROXY https_proxy NO_PROXY ALL_PROXY SSL_CERT_FILE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS
NODE_TLS_REJECT_UNAUTHORIZED PUPPETEER_EXECUTABLE_PATH PLAYWRIGHT_BROWSERS_PATH
PYTHONUNBUFFERED PYTHONIOENCODING UV_HTTP_TIMEOUT UV_NO_PROGRESS DOTNET_CLI_TELEMETRY_OPTOUT
ASPNETCORE_ENVIRONMENT GOMAXPROCS GODEBUG RAILS_ENV RUBY_YJIT_ENABLE AWS_PROFILE AWS_REGION
KUBECONFIG DOCKER_HOST MCP_TIMEOUT HF_HOME OLLAMA_HOST DATABASE_URL PGPASSWORD DISPLAY
XDG_RUNTIME_DIR XDG_SESSION_TYPE CLICOLOR LESSON EDITORIAL CCC ARCHIVE MAKER
"""


@pytest.mark.parametrize("name", LOADING.split())
def test_a_variable_that_loads_code_or_configuration_wants_its_owner(name: str) -> None:
    config = ServerConfig(name="s", command="python", args=("s.py",), env={name: "x"})
    assert [finding.key for finding in objections(config)] == [f"env.{name}"]
    vouched = ServerConfig(
        name="s", command="python", args=("s.py",), env={name: "x"}, allow=frozenset({"env"})
    )
    assert not list(objections(vouched))


def test_ordinary_variables_pass() -> None:
    assert loads_code(ORDINARY.split()) == []
