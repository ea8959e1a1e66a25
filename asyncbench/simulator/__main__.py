"""`python -m asyncbench.simulator`: the simulator without the rest of asyncbench."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

import orjson

from asyncbench.errors import AsyncbenchError
from asyncbench.simulator.serving import serve
from asyncbench.simulator.settings import parse_settings

EXAMPLE = (
    """python -m asyncbench.simulator --json-settings '{"problems": ["data/nupa.parquet"], "rpm": 600}'"""
)


def main(arguments: Sequence[str]) -> int:
    """Serve and return the exit code; what prevents it is one line of JSON: `simulated`, `error`."""
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"example: {EXAMPLE}")
    parser.add_argument("--json-settings", default="{}", help="the fields of Settings as a JSON object")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when standard input ends")
    options = parser.parse_args(arguments)
    try:
        settings = parse_settings(options.json_settings)
        asyncio.run(serve(settings, until_stdin_closes=options.until_stdin_closes))
    except AsyncbenchError as error:
        sys.stdout.write(f"{orjson.dumps({'simulated': True, 'error': str(error)}).decode()}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
