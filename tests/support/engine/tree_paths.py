"""What a tree's shape says of its nodes, worked out the slow way."""

from medusa_core.runtime.tree.shape import TreeShape


def path_to(shape: TreeShape, node: int) -> tuple[int, ...]:
    """Node indices from the root to a node, both included."""
    reverse = [node]
    while shape.parents[reverse[-1]] >= 0:
        reverse.append(shape.parents[reverse[-1]])
    return tuple(reversed(reverse))


def mask_of(shape: TreeShape) -> list[list[bool]]:
    """Return the attention mask of nodes: each sees itself and its ancestors. [n, n]"""
    paths = [path_to(shape, node) for node in range(shape.num_nodes)]
    return [[other in path for other in range(shape.num_nodes)] for path in paths]
