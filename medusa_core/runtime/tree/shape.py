"""Token trees, and their shapes: parents, depths and ranks of nodes.

A shape is reused for many steps with other tokens, so everything that depends on the shape alone
(mask, depths, retrieve indices) is computed once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from medusa_core.errors import RequestError
from medusa_core.i18n import tr

NodePath = tuple[int, ...]


@dataclass(frozen=True)
class TreeShape:
    """A token tree without its tokens; node 0 is the root.

    Attributes:
        paths: Rank path of every node; the root's is empty. Parents precede their children.
        parents: Index of every node's parent; −1 for the root.
    """

    paths: tuple[NodePath, ...]
    parents: tuple[int, ...]

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[int]]) -> TreeShape:
        """Build a shape from the rank paths of its draft nodes.

        Args:
            paths: For example `[(0,), (0, 0), (1,)]`, in any order, the root left out.

        Raises:
            RequestError: A path is empty, has a negative rank, or its parent is missing.
        """
        unique = {tuple(path) for path in paths}
        if () in unique or any(rank < 0 for path in unique for rank in path):
            raise RequestError("A tree path must hold at least one rank, none of them negative.")
        ordered: list[NodePath] = [(), *sorted(unique, key=lambda path: (len(path), path))]
        index = {path: node for node, path in enumerate(ordered)}
        orphans = [path for path in ordered[1:] if path[:-1] not in index]
        if orphans:
            raise RequestError(
                tr(
                    "The tree lacks the parents of {0} nodes, such as {1}.",
                    len(orphans),
                    orphans[0],
                ),
                "Every path needs all of its prefixes in the tree.",
            )
        parents = (-1, *(index[path[:-1]] for path in ordered[1:]))
        return cls(tuple(ordered), parents)

    @classmethod
    def from_children(cls, num_children: Sequence[int]) -> TreeShape:
        """Build a shape from the number of children of every node, in breadth-first order."""
        paths: list[NodePath] = [()]
        parents = [-1]
        for node, count in enumerate(num_children):
            paths += [(*paths[node], rank) for rank in range(count)]
            parents += [node] * count
        return cls(tuple(paths), tuple(parents))

    @classmethod
    def root_only(cls) -> TreeShape:
        """The tree of plain decoding."""
        return cls(((),), (-1,))

    @classmethod
    def chain(cls, num_nodes: int) -> TreeShape:
        """Consecutive tokens: each node has one child."""
        paths = tuple((0,) * depth for depth in range(num_nodes))
        return cls(paths, tuple(range(-1, num_nodes - 1)))

    @property
    def num_nodes(self) -> int:
        """Number of nodes, root included: the rows of a verification."""
        return len(self.paths)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Depth of every node; 0 for the root."""
        return tuple(len(path) for path in self.paths)

    @cached_property
    def depth_array(self) -> array[int]:
        """`depths` for C."""
        return array("i", self.depths)

    @cached_property
    def parent_array(self) -> array[int]:
        """`parents` for C."""
        return array("i", self.parents)

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Head (from 0) and rank of every draft node."""
        return tuple((len(path) - 1, path[-1]) for path in self.paths[1:])

    def places_among(self, num_ranks: int) -> tuple[int, ...]:
        """Index of every draft node among `num_ranks` tokens of each head, head by head."""
        if num_ranks not in self._places_among:
            flat = tuple(head * num_ranks + rank for head, rank in self.places)
            self._places_among[num_ranks] = flat
        return self._places_among[num_ranks]

    @cached_property
    def _places_among(self) -> dict[int, tuple[int, ...]]:
        """Cache of `places_among` by number of ranks."""
        return {}

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Rank of every node among its head's tokens; −1 for the root."""
        return tuple(path[-1] if path else -1 for path in self.paths)

    @cached_property
    def max_depth(self) -> int:
        """Depth of the deepest node."""
        return max(self.depths)

    @cached_property
    def num_ranks(self) -> tuple[int, ...]:
        """Number of ranks that the tree uses of head 1, 2, ...: the highest rank plus one."""
        deep = range(self.max_depth)
        return tuple(1 + max(path[d] for path in self.paths if len(path) > d) for d in deep)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Children of every node, in rank order."""
        lists: list[list[int]] = [[] for _ in self.paths]
        for node, parent in enumerate(self.parents[1:], start=1):
            lists[parent].append(node)
        return tuple(tuple(nodes) for nodes in lists)

    def pruned(self, num_heads: int, num_ranks: int) -> TreeShape:
        """Drop nodes that are deeper than the heads, or of ranks that they don't have."""
        kept = (p for p in self.paths[1:] if len(p) <= num_heads and max(p) < num_ranks)
        return TreeShape.from_paths(kept)

    def merged_at_root(self, other: TreeShape) -> TreeShape:
        """Append the nodes of another shape under the same root."""
        first, shift = len(self.children[0]), self.num_nodes - 1
        paths = ((first + path[0], *path[1:]) for path in other.paths[1:])
        parents = (parent and parent + shift for parent in other.parents[1:])
        return TreeShape((*self.paths, *paths), (*self.parents, *parents))

    def first_rows(self, num_rows: int) -> TreeShape:
        """The first `num_rows` nodes, which are a tree, as parents precede children."""
        kept = max(1, num_rows)
        return TreeShape(self.paths[:kept], self.parents[:kept])


class TokenTree(NamedTuple):
    """A tree shape with tokens.

    Attributes:
        shape: The shape.
        token_ids: Token of every node; the first one, the root, is decided. [n]
    """

    shape: TreeShape
    token_ids: tuple[int, ...]

    def merged_at_root(self, other: TokenTree) -> TokenTree:
        """Append the nodes of another tree under the same root."""
        shape = _merged_at_root(self.shape, other.shape)
        return TokenTree(shape, (*self.token_ids, *other.token_ids[1:]))

    def only(self, nodes: Sequence[int]) -> TokenTree:
        """The subtree of some nodes, ascending, with the root and all parents."""
        counts = dict.fromkeys(nodes, 0)
        for node in nodes[1:]:
            counts[self.shape.parents[node]] += 1
        shape = _of_children(tuple(counts.values()))
        return TokenTree(shape, tuple(map(self.token_ids.__getitem__, nodes)))

    def child_with(self, node: int, token_id: int) -> int | None:
        """The child of `node` with `token_id`, if any."""
        for child in self.shape.children[node]:
            if self.token_ids[child] == token_id:
                return child
        return None


@lru_cache(maxsize=64)
def _merged_at_root(shape: TreeShape, other: TreeShape) -> TreeShape:
    """Cached `TreeShape.merged_at_root`: the same shapes are merged in many steps."""
    return shape.merged_at_root(other)


@lru_cache(maxsize=512)
def _of_children(num_children: tuple[int, ...]) -> TreeShape:
    """Cached `TreeShape.from_children`, so that a shape's properties are computed once."""
    return TreeShape.from_children(num_children)
