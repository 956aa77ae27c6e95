"""The shape of a token tree: which node hangs under which, at which depth, from which rank.

A shape is fixed for many steps while the tokens in it change, so everything that depends on the
shape alone (mask, depths, retrieve indices) is computed once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from medusa_core.errors import RequestError

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
                f"The tree lacks the parents of {len(orphans)} nodes, such as {orphans[0]}.",
                "Every path needs all of its prefixes in the tree.",
            )
        parents = (-1, *(index[path[:-1]] for path in ordered[1:]))
        return cls(tuple(ordered), parents)

    @classmethod
    def from_children(cls, num_children: Sequence[int]) -> TreeShape:
        """Build a shape from how many children each node has.

        Args:
            num_children: Of every node, nodes by depth and siblings by rank.
        """
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
        """Nodes, the root included: the rows of one verification."""
        return len(self.paths)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Depth of every node; 0 for the root."""
        return tuple(len(path) for path in self.paths)

    @cached_property
    def depth_array(self) -> array[int]:
        """`depths` as C has them."""
        return array("i", self.depths)

    @cached_property
    def parent_array(self) -> array[int]:
        """`parents` as C has them."""
        return array("i", self.parents)

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Of every draft node its head, counted from 0, and its rank."""
        return tuple((len(path) - 1, path[-1]) for path in self.paths[1:])

    def places_among(self, num_ranks: int) -> tuple[int, ...]:
        """Of every draft node its place among `num_ranks` guesses of each head."""
        if num_ranks not in self._places_among:
            flat = tuple(head * num_ranks + rank for head, rank in self.places)
            self._places_among[num_ranks] = flat
        return self._places_among[num_ranks]

    @cached_property
    def _places_among(self) -> dict[int, tuple[int, ...]]:
        return {}

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Rank of every node among its head's guesses; −1 for the root."""
        return tuple(path[-1] if path else -1 for path in self.paths)

    @cached_property
    def max_depth(self) -> int:
        """Depth of the deepest node."""
        return max(self.depths)

    @cached_property
    def num_ranks(self) -> tuple[int, ...]:
        """Ranks that the tree uses of head 1, 2, ...: one more than the highest rank."""
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
        """Drop the nodes deeper than the heads at hand or of a rank they don't offer."""
        kept = (p for p in self.paths[1:] if len(p) <= num_heads and max(p) < num_ranks)
        return TreeShape.from_paths(kept)

    def beside(self, other: TreeShape) -> TreeShape:
        """This shape, and behind all its nodes those of another under the same root."""
        first, shift = len(self.children[0]), self.num_nodes - 1
        paths = ((first + path[0], *path[1:]) for path in other.paths[1:])
        parents = (parent and parent + shift for parent in other.parents[1:])
        return TreeShape((*self.paths, *paths), (*self.parents, *parents))

    def first_rows(self, num_rows: int) -> TreeShape:
        """Drop the nodes after the first `num_rows`; parents precede children, so it is a tree."""
        kept = max(1, num_rows)
        return TreeShape(self.paths[:kept], self.parents[:kept])


class TokenTree(NamedTuple):
    """A shape filled with tokens.

    Attributes:
        shape: Where the nodes hang.
        token_ids: Token of every node; the first is the root, which is decided already. [n]
    """

    shape: TreeShape
    token_ids: tuple[int, ...]

    def beside(self, other: TokenTree) -> TokenTree:
        """This tree, and behind all its nodes those of another under the same root."""
        shape = _beside(self.shape, other.shape)
        return TokenTree(shape, (*self.token_ids, *other.token_ids[1:]))

    def only(self, nodes: Sequence[int]) -> TokenTree:
        """The tree of some nodes, ascending: the root, and of every other one its parent, too."""
        counts = dict.fromkeys(nodes, 0)
        for node in nodes[1:]:
            counts[self.shape.parents[node]] += 1
        shape = _of_children(tuple(counts.values()))
        return TokenTree(shape, tuple(map(self.token_ids.__getitem__, nodes)))

    def child_with(self, node: int, token_id: int) -> int | None:
        """The child of `node` that holds `token_id`, if any."""
        for child in self.shape.children[node]:
            if self.token_ids[child] == token_id:
                return child
        return None


@lru_cache(maxsize=64)
def _beside(shape: TreeShape, other: TreeShape) -> TreeShape:
    """Both under one root; the same ones often come again."""
    return shape.beside(other)


@lru_cache(maxsize=512)
def _of_children(num_children: tuple[int, ...]) -> TreeShape:
    """One object per shape, so that what follows from it is computed once."""
    return TreeShape.from_children(num_children)
