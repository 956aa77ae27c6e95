"""Paths of a tree that grows."""

from medusa_core.speculation.drafters.grown import form_of
from medusa_core.speculation.drafters.growth import Grown
from tests.support.engine.drafts import Path_

NAMES = ("first", "second", "third")


def paths_of(tree: Grown) -> dict[Path_, tuple[str, ...]]:
    """Return the sources of every draft by the tokens of its path."""
    form = form_of(tree.form, NAMES)
    paths: list[Path_] = [()]
    nodes = {}
    drafts = zip(form.shape.parents[1:], tree.token_ids, form.sources[1:], strict=True)
    for parent, token_id, source in drafts:
        paths.append((*paths[parent], token_id))
        nodes[paths[-1]] = source.proposers
        assert source.head == len(paths[-1])
    assert len(nodes) == len(tree.token_ids), "no two nodes are alike"
    return nodes
