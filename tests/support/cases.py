"""Cases of a loop: one test over many is cheaper than many tests, and names the one that failed."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*values: object) -> Iterator[None]:
    """Name the case of a loop in the report of its failure."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {', '.join(str(getattr(each, 'name', each)) for each in values)}")
        raise
