"""The checks of the installation run once at a time, end in time, and are kept for some seconds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from caal_node.cli.processes.doctor import doctor_findings
from caal_node.page.findings import KEPT_S, LOOK_S, CannotLook, Findings, ShownFinding
from tests.stand_ins import virtual_loop

FOUND = ShownFinding(name="n8n", status="ok", found="3 tools")


class Looks:
    """Checks that end when the test says so."""

    def __init__(self) -> None:
        self.count = self.cancelled = 0
        self.go = asyncio.Event()

    async def __call__(self) -> list[ShownFinding]:
        self.count += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return [FOUND]


def test_all_who_ask_share_a_run_and_its_findings_are_kept_for_a_while() -> None:
    async def story() -> None:
        looks = Looks()
        findings = Findings(looks, asyncio.get_running_loop().time)
        asking = [asyncio.create_task(findings.newest()) for _ in range(3)]
        await asyncio.sleep(1)
        asking[0].cancel()
        looks.go.set()
        answers = await asyncio.gather(*asking[1:])
        assert [each.findings for each in answers] == [[FOUND], [FOUND]]
        await asyncio.sleep(KEPT_S - 1)
        await findings.newest()
        assert looks.count == 1
        await asyncio.sleep(1)
        await findings.newest()
        assert looks.count == 2
        await findings.aclose()

    virtual_loop.run(story())


def test_checks_that_hang_are_ended_told_and_made_again() -> None:
    async def story() -> None:
        looks = Looks()
        findings = Findings(looks, asyncio.get_running_loop().time)
        began = asyncio.get_running_loop().time()
        with pytest.raises(CannotLook, match="run: caal-node doctor"):
            await findings.newest()
        assert asyncio.get_running_loop().time() - began == pytest.approx(LOOK_S)  # pyright: ignore[reportUnknownMemberType]
        looks.go.set()
        assert (await findings.newest()).findings == [FOUND]
        assert (looks.count, looks.cancelled) == (2, 1)

    virtual_loop.run(story())


def test_closing_ends_a_run_that_is_under_way() -> None:
    async def story() -> None:
        looks = Looks()
        findings = Findings(looks, asyncio.get_running_loop().time)
        asking = asyncio.create_task(findings.newest())
        await asyncio.sleep(1)
        await findings.aclose()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert looks.cancelled == 1

    virtual_loop.run(story())


async def test_doctor_is_read_with_the_variables_it_is_given(tmp_path: Path) -> None:
    program = (
        "import json, os; print(json.dumps({'ok': True, 'checks': [{'name': 'folder', "
        "'status': 'warn', 'found': os.getcwd(), 'fix': os.environ['CAAL_MODEL']}]}))"
    )
    [finding] = await doctor_findings(tmp_path, {"CAAL_MODEL": "small:1b"}, ("-c", program))
    assert (finding.found, finding.fix) == (str(tmp_path), "small:1b")


@pytest.mark.parametrize("said", ["pass", "print('no JSON')", "print('x' * 2_000_000)"])
async def test_a_doctor_without_findings_is_told_with_what_to_run(
    tmp_path: Path, said: str
) -> None:
    with pytest.raises(CannotLook, match="run: caal-node doctor"):
        await doctor_findings(tmp_path, {}, ("-c", said))


async def test_a_doctor_that_nobody_waits_for_any_more_is_gone(tmp_path: Path) -> None:
    began = tmp_path / "began"
    program = f"import pathlib, time; pathlib.Path({str(began)!r}).touch(); time.sleep(60)"
    looking = asyncio.create_task(doctor_findings(tmp_path, {}, ("-c", program)))
    async with asyncio.timeout(20):
        while not began.exists():  # noqa: ASYNC110 - the child has no other sign
            await asyncio.sleep(0.05)
    looking.cancel()
    async with asyncio.timeout(20):
        await asyncio.gather(looking, return_exceptions=True)
    assert looking.cancelled()
