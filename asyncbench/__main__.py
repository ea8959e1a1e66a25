"""The command `asyncbench`, which is also `python -m asyncbench`."""

from asyncbench.lazy_imports import import_lazily


def main() -> None:
    """Run the command in this process, which from now on imports packages as far as it uses them."""
    import_lazily()
    from asyncbench.cli import main as command  # only now: what it imports is to be imported lazily, too

    command()


if __name__ == "__main__":
    main()
