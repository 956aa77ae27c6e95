"""What a step's drafts look like, chain, tree or nothing, and why, in words."""

from __future__ import annotations

from medusa_core.messages import CHAIN, TREE, DrafterSpeed

NOTHING = "none"


def form_name(num_nodes: int, levels: int) -> str:
    """Chain, tree or nothing.

    Args:
        num_nodes: Of the tree, root included.
        levels: How deep it is.
    """
    if num_nodes < 2:
        return NOTHING
    return CHAIN if levels == num_nodes - 1 else TREE


def why_of(speed: DrafterSpeed) -> str:
    """Why a drafter's steps have mostly that form, in one sentence with what was measured."""
    rows, tau = f"{speed.num_rows:.1f}", f"{speed.tau:.1f}"
    if speed.growth == NOTHING:
        return f"Most steps draft nothing: {tau} tokens come of a step of {rows} rows."
    times = f"A step of {rows} rows takes {speed.step_x:.1f} times as long as one of one row"
    if speed.growth == CHAIN:
        return f"{times}; a chain of {speed.levels:.1f} brings {tau} tokens."
    return f"{times}; a tree of them, {speed.levels:.1f} deep, brings {tau} tokens."
