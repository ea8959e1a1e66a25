"""Take the picture of the page for README and docs: `python -m docs.picture results/demo`.

It shows the first screens of the page that `report --html` writes, as Chromium opens it.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

import asyncbench as ab

PICTURE = Path(__file__).parent / "images" / "page.png"
CHROMIUM = "/usr/bin/chromium"
SCREEN: ViewportSize = {"width": 1060, "height": 1010}


def take(results: Path, picture: Path) -> None:
    """Write the top of a folder's page as PNG: what was found, the ranking, and where models break."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as started:
        written = ab.write_page(results, Path(place, "page.html"))
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page(viewport=SCREEN, color_scheme="light")
        page.goto(written.path.resolve().as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached")
        page.screenshot(path=picture)
        chromium.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")
