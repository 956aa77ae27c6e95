"""Which format every part of a model takes on given hardware. Nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.errors import RequestError
from medusa_core.messages import WeightFormats
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    quant_registry,
)
from medusa_core.models.quant.in_blocks import weight_formats

_USUAL_WIDTH = 4096
_MOST_NF4_BITS = 5  # of a weight in a file, scales included: finer ones would lose too much in nf4
CACHE_FORMATS = ("q4",)  # of keys and values, beside plain numbers
TABLE_PLACES = ("disk", "ram", "device")  # of per-layer embeddings
DTYPES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class StoredTypes:
    """What a file holds in blocks.

    Attributes:
        linears: The type that most linear layers have; empty for plain numbers.
        lm_head: That of the projection to the vocabulary; empty for plain numbers.
        card: The format in which a card takes its linear layers as they are; empty for none.
        multiplied: Types of all matrices that are multiplied.
    """

    linears: str = ""
    lm_head: str = ""
    card: str = ""
    multiplied: frozenset[str] = frozenset()


NO_TYPES = StoredTypes()


@dataclass(frozen=True, slots=True)
class PartFormats:
    """Settled formats.

    Attributes:
        compute: Name of the dtype that is computed in.
        device: `cpu` or `cuda`.
        linears: Of the blocks' linear layers.
        lm_head: Of the projection to the vocabulary.
        embedding: Of the token vectors; dense.
        heads: Of the Medusa heads.
        embedding_in_ram: The token vectors stay in the computer's memory.
        packs: The device keeps dense weights in an order of its own.
        compiles: The target runs as the compiled step if that can compute its sizes.
        cache: Name of the dtype of keys and values where it doesn't.
        keeps_blocks: Parts that a file holds in blocks stay as they are.
        cache_format: How keys and values are kept; empty for plain numbers.
        attended: Rows whose values attention takes; 0 for all.
        per_layer: Where per-layer embeddings lie: `disk`, `ram` or `device`.
        embedding_on_disk: The token vectors stay in the model's file, and are read row by row.
    """

    compute: str
    device: str
    linears: QuantSpec
    lm_head: QuantSpec
    embedding: QuantSpec
    heads: QuantSpec
    embedding_in_ram: bool
    packs: bool
    compiles: bool
    cache: str
    keeps_blocks: bool = False
    cache_format: str = ""
    attended: int = 0
    per_layer: str = "disk"
    embedding_on_disk: bool = False

    @property
    def dense(self) -> QuantSpec:
        """Plain numbers of the dtype that is computed in."""
        return dense_format_of(self.compute)

    def shares_embedding(self, is_tied: bool) -> bool:
        """Are the projection to the vocabulary and the token vectors one tensor in memory?"""
        alike = self.lm_head is self.embedding and self.lm_head.is_dense
        is_here = not self.embedding_in_ram and not self.embedding_on_disk
        return is_tied and alike and not self.packs and is_here

    def fitting(self, spec: QuantSpec, rows: int, columns: int) -> QuantSpec:
        """The format for a matrix of this shape: dense where `spec` can't take it."""
        return spec if spec.takes(rows, columns, self.device) else dense_format_of(self.compute)

    @property
    def names(self) -> dict[str, str | bool]:
        """Names of all, as a key of what was made by them."""
        return {
            "compute": self.compute,
            "device": self.device,
            "linears": self.linears.name,
            "lm_head": self.lm_head.name,
        }


def settle_formats(
    wanted: WeightFormats, dtype: str, hardware: Hardware, stored: StoredTypes = NO_TYPES
) -> PartFormats:
    """Fill in what was left open, and refuse what doesn't go together.

    Args:
        wanted: The formats asked for.
        dtype: Name of the compute dtype asked for; empty for the best.
        hardware: What they are to run on.
        stored: What a file holds in blocks. It is kept where no other format is asked for, on a
            card if its kernels multiply all of its types. Else a card makes nf4 of it, or int8
            where the file has more bits.

    Raises:
        RequestError: There is no such format or dtype, or they don't fit each other or this device.
    """
    registry = weight_formats()
    keeps_blocks = bool(stored.linears) and not wanted.linears and _multiplies(hardware, stored)
    if stored.linears and not wanted.linears:
        linears_name = stored.linears if keeps_blocks else _card_format(stored, hardware)
        lm_head_name = wanted.lm_head or (stored.lm_head if keeps_blocks else "")
        wanted = wanted._replace(linears=linears_name, lm_head=lm_head_name)
    linears = registry.get(wanted.linears) if wanted.linears else None
    lm_head_spec = registry.get(wanted.lm_head) if wanted.lm_head else None
    compute = _compute(linears, lm_head_spec, dtype, hardware)
    dense = dense_format_of(compute)
    linears = linears or dense
    embedding = registry.get(wanted.embedding) if wanted.embedding else dense
    if not embedding.is_dense:
        raise RequestError(
            f"Token vectors can't be {embedding.name}: they are looked up, not multiplied.",
            "Choose a dense format for the embedding, or keep it in RAM.",
        )

    def part(name: str, otherwise: QuantSpec) -> QuantSpec:
        spec = registry.get(name) if name else otherwise
        # One 16-bit format is as good as the other: that which is computed in.
        return dense if spec.is_dense and spec.bits == dense.bits else spec

    lm_head = part(wanted.lm_head, dense)
    packed = {compute, *embedding.compute} <= {*hardware.packs}
    is_usual = not wanted.cache and not wanted.attended
    compiles = is_usual and hardware.compiles and packed and linears.compiled and lm_head.compiled
    chosen = PartFormats(
        compute=compute,
        device=hardware.device,
        linears=linears,
        lm_head=lm_head,
        embedding=embedding,
        heads=part(wanted.heads, _heads_format(linears, compute, compiles, hardware.device)),
        embedding_in_ram=wanted.embedding_in_ram and hardware.device != "cpu",
        packs=compute in hardware.packs,
        compiles=compiles,
        cache=cache_dtype(compute, hardware.device, hardware.capability),
        keeps_blocks=keeps_blocks,
        cache_format=wanted.cache,
        attended=wanted.attended,
        per_layer=_table_place(wanted.per_layer, hardware.device),
    )
    if wanted.cache not in ("", *CACHE_FORMATS):
        raise RequestError(
            f"There is no cache format {wanted.cache!r}.", f"Choose {', '.join(CACHE_FORMATS)}."
        )
    if wanted.attended < 0:
        raise RequestError(
            f"Attention can't take {wanted.attended} rows.", "Choose 1 or more, or 0 for all."
        )
    for spec in (chosen.linears, chosen.lm_head, chosen.heads):
        _check(spec, compute, hardware)
    return chosen


def _table_place(wanted: str, device: str) -> str:
    """Where per-layer embeddings lie."""
    if wanted not in ("", *TABLE_PLACES):
        raise RequestError(
            f"Per-layer embeddings can't lie in {wanted!r}.", f"Choose {', '.join(TABLE_PLACES)}."
        )
    place = wanted or TABLE_PLACES[0]
    return "ram" if place == "device" and device == "cpu" else place


def _multiplies(hardware: Hardware, stored: StoredTypes) -> bool:
    """Whether a device multiplies the blocks of a file as they are stored."""
    if hardware.device == "cpu":
        return True
    return not stored.card and {stored.linears, *stored.multiplied} <= hardware.block_types


def _card_format(stored: StoredTypes, hardware: Hardware) -> str:
    """Return the format that a card makes of blocks which its kernels don't multiply."""
    if stored.card:
        return stored.card
    sizes = BLOCK_SIZES[stored.linears]
    is_fine = 8 * sizes.nbytes / sizes.weights > _MOST_NF4_BITS
    return "int8" if is_fine and not quant_registry().get("int8").lack(hardware) else "nf4"


def dense_format_of(compute: str) -> QuantSpec:
    """The format of plain numbers of a dtype."""
    return next(s for s in quant_registry().specs if s.is_dense and s.compute == (compute,))


def _heads_format(linears: QuantSpec, compute: str, compiles: bool, device: str) -> QuantSpec:
    """For heads: the target's, or where its step is compiled what is multiplied fastest.

    A guess may be rounded.
    """
    if not linears.is_made:
        return quant_registry().get("q4" if device == "cpu" else "nf4")
    light = quant_registry().get("int8")
    is_lighter = linears.bits > light.bits and compute in light.compute
    return light if compiles and is_lighter else linears


def _compute(
    linears: QuantSpec | None, lm_head: QuantSpec | None, dtype: str, hardware: Hardware
) -> str:
    """The dtype that is asked for, or the best one that both formats can be computed with in."""
    if dtype:
        if dtype not in DTYPES:
            raise RequestError(
                f"There is no dtype {dtype!r}.", f"Choose one of {', '.join(DTYPES)}."
            )
        return dtype
    best = best_dtype(hardware)
    bounds = [spec.compute for spec in (linears, lm_head) if spec is not None and spec.compute]
    common = [name for name in (best, *sum(bounds, ())) if all(name in bound for bound in bounds)]
    return common[0] if common else bounds[0][0]


def best_dtype(hardware: Hardware) -> str:
    """Pascal computes fast in float32 alone, Turing in float16, later cards in bfloat16."""
    if hardware.device == "cpu":
        return "bfloat16" if "bfloat16" in hardware.packs else "float32"
    if hardware.capability >= (8, 0):
        return "bfloat16"
    return "float16" if hardware.capability >= (7, 0) else "float32"


def cache_dtype(compute: str, device: str, capability: tuple[int, int]) -> str:
    """Name of the dtype of keys and values in torch's operations.

    On a CPU attention over a float32 cache is 2 to 5 times as fast as over bfloat16. Cards before
    Turing multiply in float32, but memory is what they lack: float16 is multiplied as float32.
    """
    if device == "cpu":
        return compute if compute == "float64" else "float32"
    return "float16" if compute == "float32" and capability < (7, 0) else compute


def _check(spec: QuantSpec, compute: str, hardware: Hardware) -> None:
    if not spec.takes(_USUAL_WIDTH, _USUAL_WIDTH, hardware.device):
        if hardware.device == "cpu":
            raise RequestError(
                f"A CPU doesn't multiply {spec.name} weights.",
                "Choose q4 or int8, or leave the weight format open.",
            )
        raise RequestError(
            f"A card doesn't multiply {spec.name} weights.",
            "Choose nf4 or int8, or leave the weight format open.",
        )
    if spec.compute and compute not in spec.compute:
        raise RequestError(
            f"{spec.name} weights can't be computed with in {compute}.",
            f"Choose the dtype {' or '.join(spec.compute)}, or leave it open.",
        )
