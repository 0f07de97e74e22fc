"""What a configuration may start: ordinary servers pass, all else asks for its owner's word."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ServerConfig, parse_servers
from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.server_config import ALLOWANCES
from mcp_bridge.security.policy import char_for_batch_file, is_data, judge, objections
from mcp_bridge.security.programs import LAUNCHERS, Named, is_tool, plain_name, read
from mcp_bridge.transports.process import spawn
from tests.stand_ins.server_faults import fault_in
from tests.stand_ins.variables import DANGEROUS, ORDINARY

STDLIB = str(Path(shlex.__file__).parent)


def verdicts(line: str) -> set[str]:
    command, *args = shlex.split(line)
    return {finding.allowance for finding in judge(command, args)}


ORDINARY_SERVERS = r"""
npx -y @modelcontextprotocol/server-filesystem /home/me/docs
npx @modelcontextprotocol/server-brave-search
npx -y @modelcontextprotocol/server-github
npx -y @modelcontextprotocol/server-memory
npx -y @modelcontextprotocol/server-puppeteer
npx -y @modelcontextprotocol/server-sequential-thinking
npx -y @modelcontextprotocol/server-postgres postgresql://localhost/mydb
npx -y @modelcontextprotocol/server-slack
npx -y @notionhq/notion-mcp-server
npx -y @upstash/context7-mcp@latest
npx @playwright/mcp@latest --extension
npx @playwright/mcp@latest --browser chromium --headless
npx --registry https://registry.npmjs.org chrome-devtools-mcp@0.18.1
npx -y firecrawl-mcp
npx appcypher/awesome-mcp-servers
npx -y -p mcp-swarm mcp-swarm-remote --url wss://example.com/mcp
npx -y tavily-mcp@0.1.4
npx -y @sentry/mcp-server@latest --access-token=x
npx -y mcp-remote https://mcp.example.com/sse --header "Authorization: Bearer x"
npx -y mcp-remote@latest https://mcp.linear.app/sse
npx -y supergateway --sse https://example.com/sse
npx -y github:hdbookie/make-mcp-server#claude-automation-helper
npx -y @azure/mcp@latest server start
npx -y @supabase/mcp-server-supabase@latest --read-only --project-ref=x
npx -y @bytebase/dbhub --transport stdio --dsn postgres://x
npx -y mongodb-mcp-server --connectionString mongodb://x
npx -y @smithery/cli@latest run @x/y --config {"key":"x"}
npx -y figma-developer-mcp --figma-api-key=x --stdio
npx --yes --package=@scope/pkg the-bin --call me
npx -p @scope/pkg the-bin -c x
npx -y tsx server.ts -e production
/Users/me/.asdf/shims/npx -y @modelcontextprotocol/server-filesystem /Users/me
npx.cmd -y @modelcontextprotocol/server-memory
cmd /c npx -y @modelcontextprotocol/server-filesystem C:\\Users\\me
cmd.exe /c uvx mcp-server-fetch
cmd /c node C:\\srv\\index.js
bunx some-server -e 1
bun x some-server
bun run server.ts -e 1
bun run /srv/app/index.ts
bun server.ts
pnpm dlx pkg -c x
pnpm --dir /srv run mcp
yarn dlx pkg
npm --prefix /srv start
npm run mcp -- -c x
npm exec -y @scope/server -- --port 3
npm exec tsx server.ts
uvx mcp-server-time --local-timezone Europe/Berlin
uvx mcp-server-git --repository /srv/x
uvx mcp-server-fetch
uvx mcp-server-sqlite --db-path /srv/x.db
uvx mcp-atlassian --jira-url https://x.atlassian.net
uvx ha-mcp@latest
uvx awslabs.aws-documentation-mcp-server@latest
uvx --from awslabs.core-mcp-server@latest awslabs.core-mcp-server.exe
uvx --from git+https://github.com/oraios/serena serena start-mcp-server --context ide-assistant
uvx --python 3.12 some-server
uvx --with httpx --from mcp[cli] mcp run server.py
uvx blender-mcp
uvx --with 'mcp<2' postgres-mcp --access-mode=unrestricted
uvx mcp-proxy-for-aws-cli==1.7.0 https://eks-mcp.example.com/mcp --profile readonly --read-only
uvx alibabacloud.mcp-proxy@latest --safety-policy ecs:*=allow,*=deny
uv run --project /srv/repo chipgraph -C /srv/x mcp
uvx duckduckgo-mcp-server
uv tool run mcp-server-time
uv run server.py -c x
uv --directory /srv/x run server.py
uv run --directory /srv/x my-server --flag
uv --directory D:\\mcp\\weather run mcp_server.py
uv run --with mcp[cli] mcp run /srv/server.py
uv run --with fastmcp fastmcp run /srv/server.py
uv run --project /srv/x --frozen python -m my_server
uv run -m my_server -c config.toml
uv run --python 3.12 --no-project --with mcp server.py
/home/me/.local/bin/uvx mcp-server-time
pipx run mcp-server-time
pipx run --spec git+https://github.com/x/y y
python -m mcp_server_time --local-timezone Europe/Berlin
python3 -u -m server.main -c config.toml
python server.py -c config.toml -i
python mcp-servers/docker/src/server.py
/srv/venv/bin/python /srv/server.py
C:\\venv\\Scripts\\python.exe C:\\mcp\\mcp_server.py
py -3 server.py
python -W ignore -X utf8 server.py -m x
node /srv/app/dist/index.js
node /usr/src/app/dist/index.js
node packages/x/dist/index.js --port 3000
node --enable-source-maps dist/index.js -p 80
node --max-old-space-size=4096 --no-warnings server.mjs --eval 1
node --import tsx server.ts
node -r dotenv/config index.js
tsx watch server.ts
docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server
docker run -i --rm mcp/postgres postgresql://host.docker.internal:5432/mydb
docker run --rm -i --network host -e GRAFANA_URL -e GRAFANA_API_KEY mcp/grafana -t stdio
docker run -i --rm --init -v /Users/me/.mcp/x:/app/config -v data:/data -e LOG=strict image
docker run -it --rm --mount type=bind,src=/Users/me/Desktop,dst=/projects/Desktop,ro mcp/filesystem
docker run -i --rm -e BookApi__BaseUrl=http://bookapi:8080 --network book_default image
docker run -i --rm --add-host=host.docker.internal:host-gateway -p 8080:8080 image sh -c x
docker run -i --rm -v C:\\Users\\me\\docs:/docs image
docker exec -i mcp-filesystem node /app/dist/index.js /data
docker mcp gateway run
docker run -i --rm --read-only --security-opt no-new-privileges --memory 256m -e TOKEN image
docker run --rm --interactive --env FASTMCP_LOG_LEVEL=ERROR x/terraform-mcp-server:latest
podman run -i --rm image
java -jar /srv/server.jar --spring.config.location=x
java -Dspring.ai.mcp.server.stdio=true -Dspring.main.web-application-type=none -jar server.jar
java -Xmx1g -cp a:b com.example.Server
dotnet /srv/Server.dll
dotnet run --project C:\\x\\PlannerMcp.csproj --no-build
dnx NuGet.Mcp.Server@1.0.0 --source https://api.nuget.org/v3/index.json --yes
deno run -A --allow-net jsr:@a/b -e x
deno run -A npm:@scope/server
deno run --allow-read=/srv --allow-env=HOME server.ts
deno run -N -R=node_modules -W=node_modules --node-modules-dir=auto jsr:@pydantic/x stdio
deno run -A https://example.com/server.ts
go run github.com/x/mcp-server@latest
go run ./server -exec x
cargo run --release --bin server -- --config x
poetry run python -m my_server
poetry -C /srv run my-server
conda run -n base --no-capture-output python server.py -c x
ruby server.rb -e x
php artisan mcp:start server
perl server.pl
github-mcp-server stdio
mcp-grafana --debug
system-review-graph-mcp
abus --as claude mcp
my-server -c 'a; b' -e x
/opt/tool/start.sh --all
~/go/bin/mcp-k8s --read-only
/opt/homebrew/bin/mcp-grafana
./run 'a|b' '$(x)' 'c\nd'
mcp-bridge serve --port 9000 -- uvx mcp-server-time
caal-node mcp serve --port 9000 -- uvx mcp-server-time
env uvx mcp-server-time
""".strip().splitlines()


@pytest.mark.parametrize("line", ORDINARY_SERVERS)
def test_ordinary_servers_pass(line: str) -> None:
    assert verdicts(line) == set()


CODE = r"""
npx -c 'touch x'
npx --call='touch x'
npx --call touch
npx -y -c x
npm exec -c 'touch x'
npm exec --script-shell=./evil x
npm --prefix exec exec -c x
node -e 1
node --eval 1
node --eval=1
node -p 1
node -pe 1
node --print 1
node -r ./evil.js server.js
node --require=./evil.js server.js
node --import ./evil.mjs server.js
node --import=data:text/javascript,1 s.js
node --loader ./evil.mjs s.js
node --env-file=evil.env s.js
node -
node
node -i
node --inspect=0.0.0.0 s.js
node --title a.js -e 1
node --max-old-space-size=4096 -e 1
node data:text/javascript,1
nodejs -e 1
tsx -e 1
ts-node --eval 1
python -c 1
python3 -c1
python3.13 -Sc 1
python -Ic 1
python -W ignore -c 1
python -Wignore -c 1
python -X dev -c 1
python -
python
python -i server.py
python -m timeit 1
python -mpdb -c 1
python -m code
pypy3 -c 1
perl -e 1
perl -we 1
perl -E 1
perl -Mevil s.pl
perl -nle 1
perl
ruby -e 1
ruby -rsocket s.rb
ruby -ne 1
php -r 1
php -dauto_prepend_file=x s
lua -e 1
lua -l evil s.lua
deno eval 1
deno run -
deno repl
deno run data:text/javascript,1
bun -e 1
bun --eval=1
bun run -
bun -p 1
bun --preload ./evil.ts s.ts
bun exec 'touch x'
java -javaagent:evil.jar -jar s.jar
java -XX:OnError=evil -jar s.jar
julia -e 1
Rscript -e 1
osascript -e 1
elixir --eval 1
uvx python -c 1
uvx --from evil python -c 1
uv run python -c 1
uv run --with evil python3 -c 1
uv tool run python -c 1
pipx run python -c 1
npx -y node -e 1
npx -p node@22 node -e 1
npx node@22 -e 1
bunx node -e 1
poetry run python -c 1
conda run -n base python -c 1
mise exec -- node -e 1
su root -c 'touch x'
flock /tmp/l -c 'touch x'
script -c 'touch x' /dev/null
node --use-largepages off --eval 1
node --use-largepages off -e 1
node --security-revert x -e 1
node --test-coverage-lines 80 -e 1
node --some-new-option x -e 1
node --some-new-option x --other y --require ./evil.js s.js
node --title -e 1
tsx --some-new-option x -e 1
bun --some-new-option x -e 1
deno run --some-new-option x -
ruby --disable gems -e 1
ruby --some-new-option x -e 1
ruby -W -e 1
julia --threads 4 -e 1
julia --some-new-option 4 --eval 1
php --some-new-option x -r 1
lua -Z x -e 1
groovy -cp lib -e 1
java --some-new-option x -javaagent:evil.jar -jar s.jar
pwsh -SomeNewOption x.ps1 -Command y
elixir --sname x --eval 1
node --experimental_loader=data:text/javascript,1 s.js
node --experimental_loader ./evil.mjs s.js
node --env_file=evil.env s.js
node --env_file_if_exists evil.env s.js
tsx --env_file=evil.env s.ts
make --eva='$(shell x)'
npm start --script-sh=./evil
perl '-F,0;system(q(x));#' s.pl
perl '-nF/,0;system(q(x));#' s.pl
julia -J evil.so s.jl
python -X pycache_prefix=/evil s.py
python -Xpycache_prefix=/evil s.py
python3 /dev/stdin
node /dev/fd/0
make --eval='$(shell x)'
make -E '$(shell x)'
make run --eval '$(shell x)'
make 'X:=$(shell x)'
make 'X!=touch x'
make run SHELL=./evil
make -f /dev/stdin
nodemon --exec 'sh -c x'
nodemon s.js -x 'sh -c x'
npx -y nodemon -x 'sh -c x'
deno task --eval x
go run -exec 'sh -c x' .
go run -exec=evil .
cargo run --config 'target.x.runner="sh"'
npm explore x -- sh -c x
npm -c 'touch x' exec
npm start --script-shell ./evil
git -c alias.x='!sh' x
node --test-reporter data:text/javascript,1 --test
node --import=data:text/javascript,1 s.js
node --title x s.js
node inspect s.js
node /dev/stdin
node //proc/self/fd/0
node https://example.com/x.js
node /usr/lib/node_modules/npm/bin/npx-cli.js -c x
node node_modules/.bin/tsx -e 1
node node_modules/ts-node/dist/bin.js -e 1
node node_modules/nodemon/bin/nodemon.js -x 'sh -c x'
python3 STDLIB/timeit.py 1
python3 STDLIB/unittest/../json/tool.py
python -m http.server
python -m uv run bash -c x
python -W ignore::x.y s.py
python -X presite=x s.py
npx 'node@>=20' -e 1
npx node@npm:node@22 -e 1
npx npm:node@22 -e 1
npx --registry https://planted.example.com x
npx --registry=http://registry.npmjs.org x
npx --node-options='-r ./x.js' y
npx --prefix /planted x
npx /usr/bin/touch x
npx -y /bin/../usr/bin/touch x
npm exec /usr/bin/touch x
docker run -v C:\\:/x image
docker run -v c:/Windows/x:/x image
docker run -v ..:/x image
docker run -v /USERS:/x image
node /usr/share/nodejs/npm/bin/npx-cli.js -c x
python -m _pyrepl
uvx cpython -c 1
java -Dspring.main.sources=x -jar s.jar
npx 'x;touch y'
npx -p x 'touch y;'
npm exec x -c 'touch y'
npm exec node
uvx 'python>=3.12' -c 1
uvx --index-url https://planted.example.com x
uvx --extra-index-url https://planted.example.com x
uvx --find-links /planted x
uvx --from http://planted.example.com/x.whl x
uvx --python /planted/python x
uvx --config-file /planted x
uv --config-file /planted run s.py
uv run --env-file /planted s.py
uv run -
uv run https://example.com/s.py
uv run git ls-remote --upload-pack=x .
pipx run https://example.com/s.py
pipx run --pip-args=--index-url=x y
bundle exec 'touch x;'
yarn exec 'touch x;'
deno run --import-map=x s.ts
deno run --preload x s.ts
deno run --v8-flags=x s.ts
deno run npm:node -e 1
deno task --eval x
dotnet fsi x.fsx
dotnet exec --depsfile x y.dll
dotnet run --property:X=y
dotnet run @x
dotnet run x --property:X=y
java @x
java -XX:+UseZGC -XX:OnError=x -jar s.jar
java -Dloader.path=/planted -jar s.jar
java -cp x com.sun.tools.javac.Main y
java -jar https://planted.example.com/x.jar
docker run -v /:/host image
docker run -i -v/:/host image
docker run --volume=/:/host image
docker run -itv /etc:/x image
docker run -v //etc:/x image
docker run -v /home:/x image
docker run -v /srv/../etc:/x image
docker run -v /srv/../../:/x image
docker run -v /var/run/docker.sock:/var/run/docker.sock image
docker run -v /srv/docker.sock:/x image
docker run --mount type=bind,src=/,dst=/host image
docker run --mount=type=bind,dst=/host,src=/ image
docker run --privileged image
docker run --pid=host image
docker run --cap-add SYS_ADMIN image
docker run --device /dev/sda image
docker run --security-opt seccomp=unconfined image
docker run --network container:x image
docker -H tcp://planted.example.com run image
docker --context x run image
docker build .
docker run
env -S 'sh -c x'
env A=b s
mcp-bridge serve -- node -e 1
mcp-bridge serve --env NODE_OPTIONS=x -- node s.js
mcp-bridge serve
volta run --node 22 node -e x
npx dotenvx run -- python3 -c x
my-server -- node --eval 1
""".strip().splitlines()


@pytest.mark.parametrize("line", CODE)
def test_code_and_arguments_that_are_not_known_ask_for_the_owners_word(line: str) -> None:
    assert verdicts(line.replace("STDLIB", STDLIB)) & {"eval", "command"}


PROGRAMS = r"""
sh -c x
bash start.sh
BASH x
cmd /k x
cmd /c del x
cmd.exe /C powershell x
powershell -File x.ps1
wsl.exe -d Ubuntu python3 x
sudo npx x
nice npx x
/usr/bin/env bash x
/lib64/ld-linux-x86-64.so.2 ./x
gdb --ex x
git ls-remote --upload-pack=x .
gcc -wrapper x y.c
cmake -E env x
perf stat x
capsh -- -c x
sg x -c y
logsave x y
start-stop-daemon --start --exec x
run-parts x
vim.basic x
apt-get -o x update
dpkg --pre-invoke=x
make -f x
/opt/homebrew/bin/git x
/nix/store/abc-bash-5.2/bin/bash x
./node_modules/.bin/nodemon -x y
npx nodemon -x y
npm exec some-runner bash x
npx bash -c x
npx cross-env A=b node s.js
uvx --from x bash -c y
uvx watchfiles x
uv run bash -c x
uv run coverage run s.py
python -m coverage run s.py
python -m fire os system x
python -m pip install x
pnpm exec sh -c x
bun run sh -c x
yarn run bash
poetry run make x
conda run -n base sudo x
mcp-bridge serve -- sh -c x
caal-node mcp serve --port 1 -- sh -c x
python -m caal_node mcp serve -- bash x
python -m mcp_bridge.serve serve -- bash x
uvx --from caal-node mcp-bridge serve -- perf stat x
my-server --shell /bin/sh
my-server --command='bash -c x'
npx supergateway --stdio 'sh -c x'
cross-env A=b sh -c x
""".strip().splitlines()


@pytest.mark.parametrize("line", PROGRAMS)
def test_shells_and_tools_of_the_system_are_no_servers(line: str) -> None:
    name = shlex.split(line)[0]
    if "/" in name or is_tool(plain_name(name)) or plain_name(name) in LAUNCHERS:
        assert "command" in verdicts(line)
    else:
        assert verdicts(line) in ({"command"}, set()), "it is not on this machine"


def test_words_for_cmd_hold_nothing_that_it_reads() -> None:
    for bad in ("a&calc", "%COMSPEC%", 'a" & calc', "a|b", "a^b", "a>b", "a\r\nb"):
        assert {f.allowance for f in judge("cmd", ["/c", "npx", "-y", bad])} == {"metacharacters"}


def test_a_value_is_never_an_option() -> None:
    assert verdicts("uv --directory --unknown run s.py") == {"eval"}
    assert verdicts("docker run --name --privileged image") == {"eval"}
    assert verdicts("npx -p") == {"eval"}
    assert verdicts("python -m") == {"eval"}


def link(folder: Path, name: str, to: str | Path) -> str:
    (folder / name).symlink_to(to)
    return str(folder / name)


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("folder", ["caal-node", "node", "npx", "bash"])
def test_a_program_that_is_missing_is_not_judged_by_the_folder_one_is_in(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / folder)
    assert verdicts("no-such-program-anywhere --serve") == set()


def test_links_are_followed_by_name_at_each_step(tmp_path: Path) -> None:
    bash = program(tmp_path, "bash")
    link(tmp_path, "first", bash)
    innocent = link(tmp_path, "innocent", "first")  # relative, through another
    assert "command" in verdicts(f"{innocent} x")
    assert "command" in verdicts(f"env {innocent} x")
    applet = link(tmp_path, "sh", program(tmp_path, "some-box"))
    assert "command" in verdicts(applet), "a program may look at the name that it is called by"
    assert "command" in verdicts(link(tmp_path, "node", bash) + " s.js")
    python = link(tmp_path, "server", sys.executable)
    assert "eval" in verdicts(f"{python} -c 1")
    assert verdicts(f"{python} server.py") == set()
    assert "eval" in verdicts(f"python {link(tmp_path, 'x.py', '/dev/stdin')}")
    npm = tmp_path / "node_modules" / "npm"
    npm.mkdir(parents=True)
    assert "eval" in verdicts(f"{link(tmp_path, 'cli', program(npm, 'npx-cli.js'))} -c x")
    assert "eval" in verdicts(f"node {link(tmp_path, 'cli.js', npm / 'npx-cli.js')} -c x")


def test_npms_global_programs_are_the_owners_wherever_npm_puts_them(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "node_modules" / "@scope" / "server"
    package.mkdir(parents=True)
    assert verdicts(link(tmp_path, "scope-server", program(package, "cli.js"))) == set()
    assert verdicts(f"node {package / 'cli.js'} -e x") == set()


def test_links_to_a_version_manager_are_what_their_name_says(tmp_path: Path) -> None:
    node = link(tmp_path, "node", program(tmp_path, "mise"))
    assert verdicts(f"{node} s.js") == set()
    assert verdicts(f"{node} -e 1") == {"eval"}
    assert verdicts(f"{tmp_path / 'mise'} exec -- node -e 1") == {"command"}


def test_a_link_in_the_search_path_is_found(tmp_path: Path) -> None:
    link(tmp_path, "tool", program(tmp_path, "zsh"))
    found = judge("tool", ["x"], search_path=str(tmp_path))
    assert {finding.allowance for finding in found} == {"command"}
    assert list(judge("tool", ["x"], search_path="/nowhere")) == []


def test_a_file_in_the_working_folder_is_not_meant_by_a_bare_name(tmp_path: Path) -> None:
    link(tmp_path, "my-server", "/bin/sh")
    assert not list(judge("my-server", ["x"], cwd=tmp_path, search_path="/nowhere"))
    assert list(judge("./my-server", ["x"], cwd=tmp_path, search_path="/nowhere"))


@pytest.mark.parametrize(
    "line",
    ["uv --directory {} run", "uv run --directory={}", "poetry -C {} run", "bun --cwd {} run"],
)
def test_a_program_is_looked_for_where_its_launcher_goes(tmp_path: Path, line: str) -> None:
    link(tmp_path, "server", "/bin/sh")
    assert verdicts(f"{line.format(tmp_path)} ./server -c x") == {"command"}
    assert verdicts(f"{line.format(tmp_path)} ./other -c x") == set()


def test_a_link_in_a_circle_and_a_name_of_nonsense_end(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.symlink_to(b)
    b.symlink_to(a)
    assert verdicts(f"{a} x") == set()
    for name in ("", " ", "~nobody-at-all/x", "/", ".", "..", "-", "a\0b", "x" * 5000):
        list(judge(name, []))
        list(judge("python", [name]))


def test_names_lose_folder_case_ending_and_version() -> None:
    for name in (
        "/usr/bin/python3.13t",
        "C:\\Py\\PYTHON.EXE",
        "python@3.12",
        "python-3",
        "python. ",
    ):
        assert plain_name(name) == "python"
    assert plain_name("7z") == "7z"
    assert plain_name("@scope/pkg@1.0") == "pkg"


def test_launchers_in_one_another_end_somewhere() -> None:
    for many in ("env ", "npx a ", "uv run -- ", "npx a python -u -m x ", "mcp-bridge serve -- "):
        command, *args = shlex.split(many * 400 + "my-server")
        list(judge(command, args))
    assert verdicts("env " * 40 + "my-server") == {"command"}


@pytest.mark.parametrize(
    "command", ["a; b", "a && b", "a | b", "$(x)", "`x`", "a > b", "a\nb", 'a"b']
)
def test_a_command_that_is_a_line_for_a_shell_is_refused(command: str) -> None:
    assert any(f.allowance == "metacharacters" for f in judge(command, []))


@pytest.mark.parametrize("bad", ["a&calc", "%COMSPEC%", 'a" & calc', "a|b", "a^b", "a>b", "a\r\nb"])
def test_a_batch_file_gets_nothing_that_cmd_reads(bad: str) -> None:
    for program_ in ("C:\\x\\npx.CMD", "x.bat", "x.cmd. "):
        assert char_for_batch_file(program_, [bad])
    assert not char_for_batch_file("C:\\x\\node.exe", [bad])
    assert any(f.allowance == "metacharacters" for f in judge("npx.cmd", ["-y", bad], windows=True))


WORDS = st.one_of(
    st.text("-ecrpmX=a./ :@'", max_size=6),
    st.sampled_from(["--", "run", "exec", "serve", "-m", "-p", "--from", "node", "s.py", "sh"]),
)


@given(st.sampled_from(sorted(LAUNCHERS)), st.lists(WORDS, max_size=8))
def test_any_arguments_are_judged_without_an_error(name: str, args: list[str]) -> None:
    list(judge(name, args))


@given(
    st.sampled_from(sorted(LAUNCHERS)),
    st.from_regex(r"--zz[a-z]{1,8}(=x)?", fullmatch=True),
    st.lists(st.sampled_from(["run", "exec", "-y", "x.py", "--", "serve"]), max_size=3),
)
def test_no_unknown_option_is_read_over(name: str, option: str, args: list[str]) -> None:
    """Neither as a flag nor with a value: before what is started, it always stops the reading."""
    for at in range(len(args) + 1):
        found = read(LAUNCHERS[name], [*args[:at], option, *args[at:]])
        if isinstance(found, Named):
            before = found.what in args[:at] or "--" in args[:at]
            assert before, (found, "what is started stands before the option")


# Variables.


@pytest.mark.parametrize("name", DANGEROUS)
def test_what_is_not_plainly_data_asks_for_the_owners_word(name: str) -> None:
    entry = ServerConfig(name="s", command="npx", args=("x",), env={name: DANGEROUS[name]})
    assert [finding.key for finding in objections(entry)] == [f"env.{name}"]
    vouched = dataclasses.replace(entry, allow=frozenset({"env"}))
    assert not list(objections(vouched))


@pytest.mark.parametrize("name", ORDINARY)
def test_the_variables_of_ordinary_servers_pass(name: str) -> None:
    entry = ServerConfig(name="s", command="npx", args=("x",), env={name: ORDINARY[name]})
    assert not list(objections(entry))


IDENTITY = frozenset(
    ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASS", "PWD", "PASSPHRASE", "USERNAME", "EMAIL")
) | {"ID", "IDS", "PORT", "TIMEOUT"}


@given(st.text(max_size=20), st.sampled_from(["_URL", "_NAME", "_PATH", "_OPTIONS", ""]))
def test_no_name_of_a_runtime_passes_but_as_a_key(text: str, ending: str) -> None:
    for runtime in ("LD_", "PYTHON", "NODE_", "npm_config_", "BASH_", "Git_"):
        name = runtime + text + ending
        last = name.upper().rpartition("_")[2]
        if is_data(name, "x") and not name.upper().startswith(("PYTHONU", "NODE_ENV", "GIT_")):
            assert last in IDENTITY


# In the file.

REFUSED = {
    "eval": (
        {"command": "node", "args": ["-e", "1"]},
        "a.args: node is given '-e', which is not known to be harmless; leave it out, or",
    ),
    "command": (
        {"command": "bash", "args": ["x"]},
        "a.command: bash is a shell; start the program",
    ),
    "env": (
        {"command": "node", "args": ["s.js"], "env": {"NODE_OPTIONS": "-r x"}},
        "a.env.NODE_OPTIONS: is not plainly data",
    ),
    "metacharacters": (
        {"command": "serve;x"},
        "a.command: holds ';', and no shell reads it; write",
    ),
    "http": ({"url": "http://example.com/mcp"}, "a.url: http:// goes over the network unencrypted"),
}


@pytest.mark.parametrize("allowance", ALLOWANCES)
def test_the_file_names_the_place_the_fix_and_the_way_out(allowance: str) -> None:
    entry, said = REFUSED[allowance]
    fault = fault_in(json.dumps({"a": entry}, indent=1), environ={})
    assert said in fault
    assert f'or write "allow": ["{allowance}"]' in fault
    assert re.match(r"servers\.json:[2-9]: ", fault)
    (config,) = parse_servers(json.dumps({"a": {**entry, "allow": [allowance]}}), environ={})
    assert config.allow == {allowance}
    others = [word for word in ALLOWANCES if word != allowance]
    assert fault_in(json.dumps({"a": {**entry, "allow": others}}), environ={})


def test_all_that_an_entry_asks_for_is_said_at_once() -> None:
    entry = {"command": "node", "args": ["-e", "x"], "env": {"NODE_OPTIONS": "y", "PATH": "z"}}
    fault = fault_in(json.dumps({"a": entry}), environ={})
    assert "env.NODE_OPTIONS: is not plainly data" in fault
    assert "node is given '-e'" in fault
    assert fault.endswith('fix these, or write "allow": ["env", "eval"]')
    assert not fault_in(json.dumps({"a": {**entry, "allow": ["env", "eval"]}}), environ={})


def test_an_objection_quotes_no_secret_and_is_short() -> None:
    args = ["-X", f"token={'k' * 400}", "--key=s3cret-value"]
    entry = ServerConfig(name="a", command="python", args=(*args, "s.py"), secrets=("k" * 400,))
    for word in ("https://x:s3cret-value@y", "x" * 5000):
        for args_ in ((*args, word), (word,)):
            for finding in objections(
                dataclasses.replace(entry, args=args_, secrets=(*entry.secrets, "s3cret-value"))
            ):
                assert "s3cret" not in str(finding)
                assert "kkk" not in str(finding)
                assert len(str(finding)) < 400


def test_a_server_that_is_off_is_not_judged() -> None:
    (config,) = parse_servers('{"a": {"command": "bash", "enabled": false}}')
    assert not config.enabled


def test_a_word_that_allows_nothing_is_named() -> None:
    fault = fault_in('{"a": {"command": "x", "allow": ["all"]}}')
    assert "a.allow.0: 'all' allows nothing; use command, eval" in fault


def test_what_a_variable_brings_is_judged_as_well() -> None:
    fault = fault_in('{"a": {"command": "${RUN}"}}', environ={"RUN": "bash"})
    assert "bash is a shell" in fault
    fault = fault_in('{"a": {"command": "node", "args": ["${X}"]}}', environ={"X": "-e"})
    assert "node is given '-e'" in fault


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
