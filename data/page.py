"""Write the libraries that draw the charts of all pages, as one script.

`python data/page.py`, in an environment with the `report` extra, writes `asyncbench/page/vega.js.gz`.
"""

import gzip
from importlib import import_module
from pathlib import Path
from typing import Any, Final

LIBRARY: Final = Path(__file__).parents[1] / "asyncbench" / "page" / "vega.js.gz"


def made() -> bytes:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    bundled: Any = import_module("vl_convert")  # its types are not those of its module
    script: str = bundled.javascript_bundle()
    return script.encode()


if __name__ == "__main__":
    LIBRARY.write_bytes(gzip.compress(made(), 9, mtime=0))
