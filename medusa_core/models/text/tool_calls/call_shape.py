"""How a model writes calls of functions: data, from which they are read and enforced."""

from __future__ import annotations

from typing import NamedTuple


class CallShape(NamedTuple):
    """A call is a JSON object of a name and arguments, with marks around it.

    Attributes:
        mark: Stands before calls in free text; empty where calls are the whole answer.
        before: Text between the mark and the first call.
        between: Text between calls behind one mark; empty where each call has its own, or where
            one call is the whole answer.
        behind: Text behind the last call.
        close: A mark at the end.
        gap: Text between the end of one call and the mark of the next.
        arguments_key: What the object calls the arguments.
        arguments_mark: Stands between the bare name and the arguments, where there is no object
            around them; empty for others.
        optional_mark: May stand before calls that are the whole answer.
        reads_python: The model may also write `[name(key=value)]`.
    """

    mark: str = ""
    before: str = ""
    between: str = ""
    behind: str = ""
    close: str = ""
    gap: str = ""
    arguments_key: str = "arguments"
    arguments_mark: str = ""
    optional_mark: str = ""
    reads_python: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """All marks: a tokenizer may have tokens without text for them."""
        found = (self.mark, self.close, self.arguments_mark, self.optional_mark)
        return tuple(mark for mark in found if mark)
