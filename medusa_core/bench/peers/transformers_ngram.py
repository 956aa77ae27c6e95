"""The library transformers with its prompt lookup."""

from functools import partial

from medusa_core.bench.peer import PeerSpec
from medusa_core.bench.transformers_mode import TransformersPeer

_TOKENS = 10  # what its documentation recommends

SPEC = PeerSpec("transformers-ngram", partial(TransformersPeer, prompt_lookup_num_tokens=_TOKENS))
