"""Take the picture of the page for README and docs: `python -m docs.picture results/demo`.

It shows the finding and the ranking of the page that `report --html` writes, as Chromium opens it.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import asyncbench as ab

PICTURE = Path(__file__).parent / "images" / "page.png"
CHROMIUM = "/usr/bin/chromium"
SHOWN = """() => {
  const margin = 16, first = document.querySelector("#view").getBoundingClientRect();
  const last = document.querySelector("#standings").getBoundingClientRect();
  return {x: first.x - margin, y: first.y - margin,
          width: first.width + 2 * margin, height: last.bottom - first.y + 2 * margin};
}"""


def take(results: Path, picture: Path) -> None:
    """Write a part of a folder's page as PNG: from the finding to the end of the ranking."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as started:
        written = ab.write_page(results, Path(place, "page.html"))
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1400, "height": 1600}, color_scheme="light")
        page.goto(written.path.resolve().as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached")
        page.screenshot(path=picture, clip=page.evaluate(SHOWN))
        chromium.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")
