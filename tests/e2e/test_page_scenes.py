"""How each state of the page looks, at phone and desk width: it fits, and axe-core finds nothing.

CAAL_PICTURES=FOLDER keeps a picture of each.
"""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from caal_node.page.server import STATIC
from tests.stand_ins.browser import DESK, PHONE, chromium, faults, opened, picture

pytestmark = pytest.mark.alone

SCENES = STATIC.parent / "client" / "built_scenes"
LOOKS = {
    "en-light-desk": (DESK, False, "en-GB"),
    "de-dark-phone": (PHONE, True, "de-DE"),
}
_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    """Where the scenes are served."""
    if not (SCENES / "index.html").is_file():
        pytest.skip("the scenes are not built; run: make page")
    handler: Any = functools.partial(Quiet, directory=str(SCENES))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("look", LOOKS)
async def test_every_scene_fits_and_bars_nobody(address: str, look: str) -> None:
    size, dark, locale = LOOKS[look]
    found = list[str]()
    async with (
        chromium() as browser,
        opened(browser, address, size=size, dark=dark, locale=locale) as page,
    ):
        scenes = await page.locator("a").all_inner_texts()
        for scene in scenes:
            await page.goto(f"{address}?scene={scene}&lang={locale[:2]}")
            await page.locator("main").first.wait_for()
            await picture(page, f"{scene}-{look}")
            found += [f"{scene}: {fault}" for fault in await faults(page)]
            if await page.evaluate(_WIDER):
                found.append(f"{scene}: wider than the window")
    assert found == []
    assert len(scenes) >= 20
