"""MTP layers of a repository, as transformers writes models that have them."""

from pathlib import Path

from medusa_core.heads.kind import read_shape
from medusa_core.hub.job import Pair
from medusa_core.hub.library.library import Library, PairOffer
from medusa_core.hub.remote import look_at_model
from medusa_core.hub.settings import HubSettings
from tests.support.hub.fixtures import LoopbackHub
from tests.support.hub.pairs import run
from tests.support.models.gguf_converter import convert
from tests.support.models.gguf_heads_files import write_mtp_gguf
from tests.support.models.mtp_peers import write_mtp_peer
from tests.support.models.qwen3_5_files import dense


def test_an_mtp_layer_inside_a_model_and_in_its_own_file_is_found(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    folder = write_mtp_peer("qwen 3.5", tmp_path / "model", config=dense())
    repo = hub.root / "org" / "Tiny-GGUF"
    repo.mkdir(parents=True)
    whole = convert(folder, repo / "Tiny-Q8_0.gguf", "q8_0")
    model = look_at_model(settings, "org/Tiny-GGUF")
    assert model.heads == read_shape(whole)
    assert model.heads.kind == "mtp"
    write_mtp_gguf(repo / "mtp-Tiny-Q8_0.gguf", whole, model.config.num_layers)
    library = Library(tmp_path / "jobs.db", tmp_path / "folders.json", settings)
    offer = run(library.look_at(PairOffer("", Pair("org/Tiny-GGUF"))))
    (drafter,) = offer.drafters
    assert (drafter.kind, drafter.file) == ("mtp", "mtp-Tiny-Q8_0.gguf")
    assert run(library.look_at(offer.with_drafter(drafter))).heads == model.heads
