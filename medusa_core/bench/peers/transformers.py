"""The library transformers: its own plain `generate`."""

from medusa_core.bench.peer import PeerSpec
from medusa_core.bench.transformers_mode import TransformersPeer

SPEC = PeerSpec("transformers", TransformersPeer)
