"""Opens each scene of the page in Chromium, saves pictures, and looks for barriers with axe-core.

Build the scenes first (`npm ci && npm run scenes` in `caal_node/page/client`). It needs the package
`playwright`, which is no dependency of ours, and a Chromium of the system:

    python tests/page/look_at_scenes.py --out /tmp/scenes

It exits with 1 if axe finds something, a text does not fit, or the browser reports an error.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import sys
import threading
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

CLIENT = Path(__file__).parents[2] / "caal_node" / "page" / "client"
SCENES = CLIENT / "built_scenes"
AXE = CLIENT / "node_modules" / "axe-core" / "axe.min.js"
POLICY = (
    "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data:; "
    "media-src 'self' blob:; style-src 'self'; script-src 'self'; worker-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""The policy that the page is served with."""
SIZES = {"phone": (360, 740), "desk": (1280, 800)}
_WIDER = """() => document.documentElement.scrollWidth > document.documentElement.clientWidth"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder for the pictures")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--scene", action="append", help="only this scene; may be repeated")
    parser.add_argument("--lang", action="append", help="only this language (default: en and de)")
    options = parser.parse_args()
    if not (SCENES / "index.html").is_file():
        parser.error("build the scenes first: npm run scenes")
    options.out.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(_Handler, directory=str(SCENES))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=["--no-sandbox"]
        )
        scenes = options.scene or _scene_names(browser, base)
        found = 0
        for language in options.lang or ["en", "de"]:
            for scheme in ("light", "dark"):
                for size in SIZES:
                    found += _look(browser, base, scenes, language, scheme, size, options.out)
        browser.close()
    server.shutdown()
    print(f"{len(scenes)} scenes, {found} findings")
    return 1 if found else 0


def _scene_names(browser: Browser, base: str) -> list[str]:
    page = browser.new_page()
    page.goto(base)
    names = page.locator("a").all_inner_texts()
    page.close()
    return names


def _look(
    browser: Browser,
    base: str,
    scenes: list[str],
    language: str,
    scheme: Any,
    size: str,
    out: Path,
) -> int:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
        device_scale_factor=2 if size == "phone" else 1,
    )
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    found = 0
    for scene in scenes:
        name = f"{scene}-{language}-{scheme}-{size}"
        page.goto(f"{base}?scene={scene}&lang={language}")
        page.wait_for_timeout(150)
        page.screenshot(path=out / f"{name}.png")
        errors += _violations(page)
        if page.evaluate(_WIDER):
            errors.append("the page is wider than the window")
        for error in errors:
            print(f"{name}: {error}")
        found += len(errors)
        errors.clear()
    context.close()
    return found


def _violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    results = page.evaluate("() => axe.run()")
    return [
        f"{violation['id']}: {violation['help']}: "
        + "; ".join(str(node["target"]) for node in violation["nodes"][:3])
        for violation in results["violations"]
    ]


if __name__ == "__main__":
    sys.exit(main())
