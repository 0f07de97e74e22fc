"""The wheel, installed as users install it, alone and beside real packages of the same names."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
FOREIGN = ("n8n==0.11.0", "mcp_bridge==0.5.1", "setuptools<81")
"""Other people's packages of our names; the first needs setuptools of its time."""
LIMIT_S = 120.0


@dataclass(frozen=True)
class Environment:
    """A virtual environment that finds our dependencies, and not our checkout."""

    folder: Path

    def run(self, *command: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def python(self, code: str, exit_code: int = 0) -> str:
        return self.run("python", "-c", code, code=exit_code)

    def pip(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "pip", "-q", "--python", str(self.folder), *arguments],
            check=True,
            timeout=LIMIT_S,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, timeout=LIMIT_S, capture_output=True)
    (built,) = folder.glob("caal_node-*.whl")
    return built


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    venv.create(tmp_path, with_pip=False, symlinks=True)
    (site,) = tmp_path.glob("lib/python*/site-packages")
    # Files that name a path are read in `site` alone, so the editable checkout is not found.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return Environment(tmp_path)


def test_it_brings_its_packages_prompts_and_examples(environment: Environment, wheel: Path) -> None:
    environment.pip("install", "--no-deps", str(wheel))
    said = environment.python(
        "import caal_node, n8n, mcp_bridge\n"
        "from caal_node.core.prompt_files import sentence\n"
        "print(caal_node.__file__, n8n.N8nTools, mcp_bridge.ServerManager, sentence('went_wrong'))"
    )
    assert str(environment.folder) in said
    assert "serve" in environment.run("mcp-bridge", "--help")
    page = "from caal_node.page import server as s; print(*s.STATIC.parent.iterdir())"
    assert "static" in (files := environment.python(page))
    assert "client" not in files  # nobody who has the wheel needs Node
    told = environment.run("caal-node", "init", "mine")
    mine = environment.folder / "mine"
    assert "caal-node doctor" in told
    assert (mine / ".env").read_text() == (ROOT / ".env.example").read_text()
    assert (mine / "mcp_servers.json.example").exists()
    assert (mine / ".env").stat().st_mode & 0o077 == 0


def test_a_program_that_does_not_import_it_finds_nothing_of_its_names(
    environment: Environment, wheel: Path
) -> None:
    environment.pip("install", "--no-deps", str(wheel))
    environment.python(
        "from importlib.util import find_spec; import sys\n"
        "assert find_spec('n8n') is None and find_spec('mcp_bridge') is None\n"
        "assert 'caal_node' not in sys.modules and not any('caal_node' in p for p in sys.path)"
    )
    environment.python(
        "import caal_node, mcp_bridge.core.tools, n8n.client, sys\n"
        "assert not any('caal_node' in p for p in sys.path)"
    )


@pytest.mark.parametrize("ours_first", [False, True])
def test_other_packages_of_our_names_neither_break_us_nor_are_broken(
    environment: Environment, wheel: Path, ours_first: bool
) -> None:
    steps = [("install", "--no-deps", str(wheel)), ("install", "--no-deps", *FOREIGN)]
    for step in steps if ours_first else reversed(steps):
        environment.pip(*step)
    theirs = "import n8n.client, mcp_bridge; assert mcp_bridge.__version__ == '0.5.1'; "
    ours = "import n8n, mcp_bridge; n8n.N8nTools, mcp_bridge.ServerManager"

    environment.python(theirs)
    # Whose command `mcp-bridge` is in the end is up to the order; ours has a name of its own too.
    assert "caal-node mcp serve" in environment.run("caal-node", "mcp", "serve", "--help")
    unit = environment.run("caal-node", "mcp", "unit")
    assert f"ExecStart={environment.folder}/bin/caal-node mcp serve --token-file" in unit
    said = environment.python(f"import caal_node; {ours}")
    assert "n8n is caal_node's here" in said
    assert "mcp_bridge is caal_node's here" in said
    said = environment.python(f"{theirs} import caal_node", exit_code=1)
    assert "import caal_node first, or use that one in another process" in said

    environment.pip("uninstall", "-y", "caal-node")
    environment.python(theirs)
    environment.pip("install", "--no-deps", str(wheel))
    environment.pip("uninstall", "-y", "n8n", "mcp_bridge")
    environment.python(f"import caal_node; {ours}")


def test_init_overwrites_nothing(environment: Environment, wheel: Path) -> None:
    environment.pip("install", "--no-deps", str(wheel))
    (environment.folder / ".env").write_text("CAAL_MODEL=mine\n")
    assert ".env exists already" in environment.run("caal-node", "init")
    assert (environment.folder / ".env").read_text() == "CAAL_MODEL=mine\n"
    said = environment.run("caal-node", "init", "/proc/nowhere", code=1)
    assert "name a folder that you may write" in said


def test_livekit_finds_the_plugin_of_the_wheel(environment: Environment, wheel: Path) -> None:
    environment.pip("install", "--no-deps", str(wheel))
    said = environment.python(
        "import os\n"
        "os.environ |= {'CAAL_STT': 'none', 'CAAL_TTS': 'none'}\n"
        "from livekit.agents.__main__ import main\n"
        "raise SystemExit(main(['download-files']))"
    )
    assert "finished downloading files for livekit.plugins.caal" in said
    environment.python("from livekit.plugins import caal; assert caal.LLM().provider == 'ollama'")
