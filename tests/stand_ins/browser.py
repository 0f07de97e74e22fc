"""A real Chromium that opens the page of `caal-node up`, with a microphone that plays WAV files."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, async_playwright

from caal_node.page.server import STATIC

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PICTURES: Final = "CAAL_PICTURES"
"""The folder in which the pictures of the page's states are kept."""
DESK: Final = (1280, 800)
PHONE: Final = (360, 740)
AXE: Final = STATIC.parent / "client" / "node_modules" / "axe-core" / "axe.min.js"
_MICROPHONE: Final = """
const context = new AudioContext();
const microphone = context.createMediaStreamDestination();
navigator.mediaDevices.getUserMedia = async () => microphone.stream.clone();
window.sayIntoMicrophone = async (wav) => {
  const bytes = Uint8Array.from(atob(wav), (letter) => letter.charCodeAt(0));
  const sound = context.createBufferSource();
  sound.buffer = await context.decodeAudioData(bytes.buffer);
  sound.connect(microphone);
  await new Promise((over) => { sound.onended = over; sound.start(); });
};
"""
"""A microphone that is silent until a test has something said; Chromium's own plays one file, from
the moment at which it is opened."""
CLICK_MS: Final = 30_000
"""Milliseconds that the page is given for what it shows next; a fraction on an idle machine."""


def find_chromium() -> Path:
    """Where Chromium is; a test without one, or without the built page, is skipped."""
    if not (STATIC / "index.html").is_file():
        pytest.skip("the page is not built; run: make page")
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        pytest.skip("no Chromium; run: apt-get install chromium")
    return Path(found)


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """A browser without sound, whose microphone is a stand-in."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(
            executable_path=find_chromium(),
            args=[
                "--no-sandbox",
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                "--autoplay-policy=no-user-gesture-required",
                "--mute-audio",
            ],
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def opened(
    browser: Browser,
    link: str,
    *,
    size: tuple[int, int] = DESK,
    microphone: bool = True,
    speaks: bool = False,
    dark: bool = False,
    locale: str = "en-GB",
    any_certificate: bool = False,
) -> AsyncGenerator[Page]:
    """A page in a browser profile of its own, into which one can `say` something if it `speaks`.

    What it throws fails the test.
    """
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        permissions=["microphone"] if microphone else [],
        color_scheme="dark" if dark else "light",
        locale=locale,
        bypass_csp=False,
        ignore_https_errors=any_certificate,
    )
    context.set_default_timeout(CLICK_MS)
    if speaks:
        await context.add_init_script(_MICROPHONE)
    page = await context.new_page()
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(f"{error} {error.stack}"))
    page.on(
        "console",
        lambda said: thrown.append(said.text) if "Content Security Policy" in said.text else None,
    )
    try:
        await page.goto(link)
        yield page
        assert thrown == [], thrown
    finally:
        await context.close()


async def say(page: Page, wav: bytes) -> None:
    """Play a WAV into the page's microphone, to its end."""
    await page.evaluate("wav => sayIntoMicrophone(wav)", base64.b64encode(wav).decode())


async def picture(page: Page, name: str) -> None:
    """Keep a picture of the page where CAAL_PICTURES names a folder."""
    if folder := os.environ.get(PICTURES):
        await page.screenshot(path=Path(folder) / f"{name}.png")


async def faults(page: Page) -> list[str]:
    """What axe-core finds wrong for people with disabilities."""
    assert AXE.is_file(), "run: make page"
    await page.evaluate(AXE.read_text("utf-8"))
    found = await page.evaluate("axe.run()")
    return [
        f"{each['id']}: {each['help']} {each['nodes'][0]['html']}" for each in found["violations"]
    ]
