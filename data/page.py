"""Write the parts that all pages share: the charts, and the libraries that draw them.

`python data/page.py`, in an environment with the `report` extra, writes `asyncbench/page/*.gz`.
"""

import gzip
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from asyncbench.page.charts.catalogue import CHARTS, ONLY_FIGURES
from asyncbench.page.charts.drawing import spec_of
from asyncbench.store.rows import encode_json

PAGE: Final = Path(__file__).parents[1] / "asyncbench" / "page"


def made() -> dict[str, bytes]:
    """Return Vega, Vega-Lite and Vega-Embed as one script, and the charts, by the names of their files."""
    bundled: Any = import_module("vl_convert")  # its types are not those of its module
    specs = {name: spec_of(name) for name in CHARTS if name not in ONLY_FIGURES}
    return {"vega.js.gz": bundled.javascript_bundle().encode(), "specs.json.gz": encode_json(specs)}


def main() -> None:
    """Write both."""
    for name, content in made().items():
        (PAGE / name).write_bytes(gzip.compress(content, 9, mtime=0))


if __name__ == "__main__":
    main()
