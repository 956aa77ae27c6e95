"""Errors of the tokenizer library.

Its panics aren't subclasses of `Exception`; uncaught, they would end the calling thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from medusa_core.errors import MedusaError, TokenizerError
from medusa_core.i18n import tr

_PANICS = "pyo3_runtime"  # module of the library's PanicException, which can't be imported
_HINT = "Download the tokenizer's files again, or choose another model."


@contextmanager
def tokenizer_errors(message: str, hint: str = _HINT) -> Iterator[None]:
    """Convert exceptions and panics of the library.

    Args:
        message: What failed, as the beginning of a sentence.
        hint: What to do about it.

    Raises:
        TokenizerError: The library raised or panicked.
    """
    try:
        yield
    except MedusaError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__module__ == _PANICS:
            raise TokenizerError(
                tr("{0}: {1}.", message, str(error) or type(error).__name__), hint
            ) from error
        raise
