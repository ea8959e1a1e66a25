"""Build the docs site: `python -m docs` writes it to site/."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.generated import filled

ROOT = Path(__file__).resolve().parent.parent
# In a page that is opened from the disk, search needs this script: ours is beside the pages.
_SHIM = re.compile(r"https://[^\"]+/iframe-worker/shim")


def stage(folder: Path) -> None:
    """Lay out what the generator reads: its settings and the pages, with what they say from the code."""
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for page in (folder / "docs").rglob("*.md"):
        text = filled(page.read_text("utf-8"))
        # without prompts, as commands stand in our pages, `console` would be coloured as output
        page.write_text(text.replace("```console", "```bash"), "utf-8")


def build(site: Path) -> None:
    """Write the site. A broken link, a missing anchor or any other warning ends the build."""
    with tempfile.TemporaryDirectory() as place:
        stage(Path(place))
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)  # noqa: S603  our own words
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}")
        built = Path(place, "site")
        for page in built.rglob("*.html"):
            up = "../" * (len(page.relative_to(built).parts) - 1)
            page.write_text(_SHIM.sub(f"{up}assets/iframe-worker.js", page.read_text("utf-8")), "utf-8")
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(built, site)


if __name__ == "__main__":
    build(ROOT / "site")
    print(f"open {Path('site', 'index.html')}")
