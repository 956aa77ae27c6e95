"""One part of somebody's work."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """What a row of LICENCES.md says.

    Attributes:
        name: as people know it.
        licence: an SPDX expression, or words where there is none.
        by: who made it.
        text: where the licence's text lies: a path or an address.
        version: the one that is installed; empty for what has none.
    """

    name: str
    licence: str
    by: str
    text: str
    version: str = ""
