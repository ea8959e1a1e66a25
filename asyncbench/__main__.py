"""`python -m asyncbench`: the same as the command `asyncbench`."""

from asyncbench.cli import main

if __name__ == "__main__":
    main()
