"""The README and the addresses of the package, which depend on where it is published."""

import os
import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE: Final = "ASYNCBENCH_REPOSITORY"  # `make dist REPOSITORY=…` sets it
_LINK: Final = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)")
_ABSOLUTE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.IGNORECASE)


class Metadata(MetadataHookInterface):
    """The README and the addresses of a build; without an address, the README as it is in a checkout."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what `pyproject.toml` calls dynamic."""
        root = Path(self.root)
        text = (root / "README.md").read_text("utf-8")
        metadata["urls"] = {}
        if address := os.environ.get(VARIABLE, "").rstrip("/"):
            tag = f"v{metadata['version']}"
            text = absolute(text, address, tag, root)
            # a reader of an index has no checkout
            text = text.replace("install '.[", f"install '{metadata['name']}[")
            changes = f"{address}/blob/{tag}/CHANGELOG.md"
            metadata["urls"] = {"Repository": address, "Changelog": changes}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, address: str, tag: str, root: Path) -> str:
    """Return a Markdown page whose links and pictures name files of a checkout by their addresses at a tag.

    Args:
        text: the page.
        address: of the repository.
        tag: of the version.
        root: the checkout.

    Raises:
        ValueError: a link names no file of the checkout.
    """

    def replaced(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if _ABSOLUTE.match(target):
            return link[0]
        path = root / target.partition("#")[0]
        if not path.exists():
            raise ValueError(f"README.md: {target} is not there")
        form = "raw" if picture else "tree" if path.is_dir() else "blob"
        return f"{picture}{words}{address}/{form}/{tag}/{target}"

    return _LINK.sub(replaced, text)
