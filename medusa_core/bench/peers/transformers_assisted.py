"""The library transformers with a small draft model: `--assistant` names its folder."""

from medusa_core.bench.contestant import Contestant
from medusa_core.bench.peer import PeerOptions, PeerSpec
from medusa_core.bench.transformers_mode import TransformersPeer, load_model
from medusa_core.errors import RequestError


def _build(options: PeerOptions) -> Contestant:
    """Make the peer with a draft model; raises `RequestError` without one."""
    if options.assistant_dir is None:
        raise RequestError(
            "transformers-assisted needs a small model that drafts.",
            "Train one (python resources/models/llama-pebble/recipe train --size nano), "
            "and name its folder with --assistant.",
        )
    assistant = load_model(options.assistant_dir, options.target)
    return TransformersPeer(options, assistant_model=assistant)


SPEC = PeerSpec("transformers-assisted", _build)
