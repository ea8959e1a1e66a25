"""The command `asyncbench`, which is also `python -m asyncbench`."""

import sys

from asyncbench.errors import ConfigError, refuse_windows


class NoPandas:
    """A finder of modules that tells pyarrow, as soon as it is there, that there is no pandas.

    At its first array of Python objects pyarrow imports pandas, to see whether they are objects of pandas.
    That takes a quarter of a second and gains nothing: the command makes no DataFrame. Should code of a user
    ask pyarrow for one, pyarrow imports pandas then.
    """

    def __init__(self) -> None:
        self._hides_pandas = False

    def find_spec(self, name: str, *_: object) -> None:
        """Leave every module to the finders after this one, but pandas while pyarrow asks for it."""
        if name == "pandas" and self._hides_pandas:
            raise ModuleNotFoundError(name=name)
        # `pyarrow.lib`, which has `array`, comes first; the next module of pyarrow finds it there.
        if name.startswith("pyarrow.") and (array := getattr(sys.modules.get("pyarrow"), "array", None)):
            self._hides_pandas = True
            array([0])
            sys.meta_path.remove(self)


def main() -> None:
    """Run the command in this process, in which pyarrow leaves pandas alone."""
    try:
        refuse_windows()  # before a module is missing there
    except ConfigError as error:
        print(f"asyncbench: {error}", file=sys.stderr)  # noqa: T201  nothing else is imported yet
        sys.exit(2)
    sys.meta_path.insert(0, NoPandas())
    from asyncbench.cli import main as command

    command()


if __name__ == "__main__":
    main()
