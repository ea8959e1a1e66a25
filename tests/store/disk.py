"""A disk that is full: the operating system's own limit on the size of a file."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def disk_for(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
