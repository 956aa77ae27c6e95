"""Choose the weight format of every part of a model for given hardware, without torch."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.messages import WeightFormats
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.format import Hardware, QuantSpec, quant_registry

_TYPICAL_WIDTH = 4096
_MAX_NF4_BITS = 5  # per weight of a file, scales included: finer types would lose too much in nf4
CACHE_FORMATS = ("q8_0", "q4")  # quantized formats of the KV cache
DENSE_CACHES = {"float64": "f64", "float32": "f32", "bfloat16": "bf16", "float16": "f16"}
CACHE_TYPES = ("auto", "f32", "bf16", "f16", *CACHE_FORMATS)
TABLE_PLACES = ("disk", "ram", "device")  # of per-layer embeddings
DTYPES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class StoredTypes:
    """Quantized formats of a model's files.

    Attributes:
        linears: Block type of most linear layers; empty if they are unquantized.
        lm_head: Block type of the LM head; empty if it is unquantized.
        card: Weight format in which a GPU can use the linear layers unchanged; empty if none.
        multiplied: Block types of all matrices that are multiplied.
    """

    linears: str = ""
    lm_head: str = ""
    card: str = ""
    multiplied: frozenset[str] = frozenset()


NO_TYPES = StoredTypes()


@dataclass(frozen=True, slots=True)
class PartFormats:
    """Weight formats of all parts of a model, and where they are kept.

    Attributes:
        compute: Name of the compute dtype.
        device: `cpu` or `cuda`.
        linears: Format of the blocks' linear layers.
        lm_head: Format of the LM head.
        embedding: Format of the token embedding; dense.
        heads: Format of Medusa heads.
        embedding_in_ram: Whether the token embedding stays in main memory.
        packs: Whether dense weights are reordered for the device.
        compiles: Whether the target runs as the compiled step, if that supports its sizes.
        cache: Name of the KV cache's dtype if the target isn't compiled.
        keeps_blocks: Whether block-quantized weights of files keep their blocks.
        cache_format: Quantized format of the KV cache, `q8_0` or `q4`; empty for none.
        attended: Number of cached rows whose values attention reads, those of the largest weights;
            0 for all.
        per_layer: Where per-layer embeddings are kept: `disk`, `ram` or `device`.
        embedding_on_disk: Whether rows of the token embedding are read from the model's files, as
            on a CPU: a pass needs few of them.
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
        """The unquantized format of the compute dtype."""
        return dense_format_of(self.compute)

    def shares_embedding(self, is_tied: bool) -> bool:
        """Whether LM head and token embedding are one tensor in memory."""
        alike = self.lm_head is self.embedding and self.lm_head.is_dense
        on_device = not self.embedding_in_ram and not self.embedding_on_disk
        return is_tied and alike and not self.packs and on_device

    def fitting(self, spec: QuantSpec, rows: int, columns: int) -> QuantSpec:
        """Return the format of a matrix of this shape: dense if `spec` doesn't support it."""
        return spec if spec.supports(rows, columns, self.device) else dense_format_of(self.compute)

    def fitting_linear(self, part: LinearSpec, wanted: QuantSpec) -> QuantSpec:
        """Return the format of a linear layer where `wanted` is asked for."""
        return self.fitting(self.dense if part.stays_dense else wanted, part.rows, part.columns)

    @property
    def names(self) -> dict[str, str | bool]:
        """Names by which quantized weights are cached."""
        return {
            "compute": self.compute,
            "device": self.device,
            "linears": self.linears.name,
            "lm_head": self.lm_head.name,
        }


def resolve_formats(
    wanted: WeightFormats, dtype: str, hardware: Hardware, stored: StoredTypes = NO_TYPES
) -> PartFormats:
    """Choose formats that the user left open, and refuse incompatible ones.

    Args:
        wanted: The user's choices.
        dtype: Name of the compute dtype; empty for the best.
        hardware: Properties of the device.
        stored: Quantized formats of the model's files. By default they are kept, on a GPU if its
            kernels multiply all of them; else they become nf4, or int8 if the file has more bits.

    Raises:
        RequestError: A format or dtype doesn't exist, or they don't fit each other or the device.
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
            tr("Token vectors can't be {0}: they are looked up, not multiplied.", embedding.name),
            "Choose a dense format for the embedding, or keep it in RAM.",
        )

    def part(name: str, otherwise: QuantSpec) -> QuantSpec:
        """Return the format of a part: the one asked for, else the default."""
        spec = registry.get(name) if name else otherwise
        # Any 16-bit format becomes that of the compute dtype: it has the same size and no casts.
        return dense if spec.is_dense and spec.bits == dense.bits else spec

    lm_head, packs = part(wanted.lm_head, dense), compute in hardware.packs
    packed = {compute, *embedding.compute} <= {*hardware.packs}
    is_read = wanted.cache != "q4" and not wanted.attended  # by the compiled step
    compiles = is_read and hardware.compiles and packed and linears.compiled and lm_head.compiled
    chosen = PartFormats(
        compute=compute,
        device=hardware.device,
        linears=linears,
        lm_head=lm_head,
        embedding=embedding,
        heads=part(wanted.heads, _heads_format(linears, compute, compiles, hardware.device)),
        embedding_in_ram=wanted.embedding_in_ram and hardware.device != "cpu",
        # An LM head that isn't packed may share its memory.
        embedding_on_disk=hardware.device == "cpu" and (packs or lm_head is not embedding),
        packs=packs,
        compiles=compiles,
        cache=cache_dtype(compute, hardware.device, hardware.multiplies_halves),
        keeps_blocks=keeps_blocks,
        cache_format=wanted.cache if wanted.cache in CACHE_FORMATS else "",
        attended=wanted.attended,
        per_layer=_table_place(wanted.per_layer, hardware.device),
    )
    if wanted.cache not in ("", *CACHE_TYPES):
        raise RequestError(
            tr("There is no cache format {0}.", repr(wanted.cache)),
            tr("Choose {0}.", ", ".join(CACHE_TYPES)),
        )
    if wanted.attended < 0:
        raise RequestError(
            tr("Attention can't take {0} rows.", wanted.attended), "Choose 1 or more, or 0 for all."
        )
    for spec in (chosen.linears, chosen.lm_head, chosen.heads):
        _check_supported(spec, compute, hardware)
    return chosen


def resolve_host_formats(
    wanted: WeightFormats, dtype: str, hardware: Hardware, stored: StoredTypes = NO_TYPES
) -> PartFormats:
    """Choose the formats of parts that the processor computes beside a card.

    Args:
        wanted: The user's choices for the model on the card.
        dtype: Name of the card's compute dtype; empty for the best.
        hardware: Properties of the processor.
        stored: Quantized formats of the model's files, which a processor keeps.

    Raises:
        RequestError: A format or dtype doesn't exist, or they don't fit each other.
    """
    linears = wanted.linears
    if linears and not weight_formats().get(linears).supports(
        _TYPICAL_WIDTH, _TYPICAL_WIDTH, "cpu"
    ):
        linears = "" if stored.linears else "q4"
    own = dtype if dtype in ("float64", "float32") else ""
    return resolve_formats(WeightFormats(linears), own, hardware, stored)


def _table_place(wanted: str, device: str) -> str:
    """Choose where per-layer embeddings are kept."""
    if wanted not in ("", *TABLE_PLACES):
        raise RequestError(
            tr("Per-layer embeddings can't lie in {0}.", repr(wanted)),
            tr("Choose {0}.", ", ".join(TABLE_PLACES)),
        )
    place = wanted or TABLE_PLACES[0]
    return "ram" if place == "device" and device == "cpu" else place


def _multiplies(hardware: Hardware, stored: StoredTypes) -> bool:
    """Whether a device multiplies the blocks of a file without conversion."""
    if hardware.device == "cpu":
        return True
    return not stored.card and {stored.linears, *stored.multiplied} <= hardware.block_types


def _card_format(stored: StoredTypes, hardware: Hardware) -> str:
    """Choose the format to which a GPU converts blocks that its kernels don't multiply."""
    if stored.card:
        return stored.card
    sizes = BLOCK_SIZES[stored.linears]
    is_fine = 8 * sizes.nbytes / sizes.weights > _MAX_NF4_BITS
    return "int8" if is_fine and not quant_registry().get("int8").limitation(hardware) else "nf4"


def dense_format_of(compute: str) -> QuantSpec:
    """Return the unquantized format of a dtype."""
    return next(s for s in quant_registry().specs if s.is_dense and s.compute == (compute,))


def _heads_format(linears: QuantSpec, compute: str, compiles: bool, device: str) -> QuantSpec:
    """Choose the format of heads: the target's, or if it is compiled the fastest.

    Rounding errors of drafts cost acceptance, but never change the output.
    """
    if not linears.can_quantize:
        return quant_registry().get("q4" if device == "cpu" else "nf4")
    light = quant_registry().get("int8")
    is_lighter = linears.bits > light.bits and compute in light.compute
    return light if compiles and is_lighter else linears


def _compute(
    linears: QuantSpec | None, lm_head: QuantSpec | None, dtype: str, hardware: Hardware
) -> str:
    """Return the requested compute dtype, or the best one that both formats allow."""
    if dtype:
        if dtype not in DTYPES:
            raise RequestError(
                tr("There is no dtype {0}.", repr(dtype)),
                tr("Choose one of {0}.", ", ".join(DTYPES)),
            )
        return dtype
    best = best_dtype(hardware)
    allowed = [spec.compute for spec in (linears, lm_head) if spec is not None and spec.compute]
    common = [name for name in (best, *sum(allowed, ())) if all(name in one for one in allowed)]
    return common[0] if common else allowed[0][0]


def best_dtype(hardware: Hardware) -> str:
    """Return the dtype to compute in: bfloat16 from Ampere on, float16 before.

    Cards without tensor cores (GTX 10 and 16) compute few rows in float32, up to nine times as fast
    as in float16.
    """
    if hardware.device == "cpu":
        return "bfloat16" if "bfloat16" in hardware.packs else "float32"
    if hardware.capability >= (8, 0):
        return "bfloat16"
    return "float16" if hardware.multiplies_halves else "float32"


def cache_dtype(compute: str, device: str, multiplies_halves: bool) -> str:
    """Return the name of the dtype of keys and values in torch's operations.

    On a CPU attention over a float32 cache is 2 to 5 times as fast as over bfloat16. Cards without
    tensor cores compute in float32, but memory is what they lack.
    """
    if device == "cpu":
        return compute if compute == "float64" else "float32"
    return "float16" if compute == "float32" and not multiplies_halves else compute


def _check_supported(spec: QuantSpec, compute: str, hardware: Hardware) -> None:
    """Refuse a weight format that the device can't multiply."""
    if not spec.supports(_TYPICAL_WIDTH, _TYPICAL_WIDTH, hardware.device):
        if hardware.device == "cpu":
            raise RequestError(
                tr("A CPU doesn't multiply {0} weights.", spec.name),
                "Choose q4 or int8, or leave the weight format open.",
            )
        raise RequestError(
            tr("A card doesn't multiply {0} weights.", spec.name),
            "Choose nf4 or int8, or leave the weight format open.",
        )
    if spec.compute and compute not in spec.compute:
        raise RequestError(
            tr("{0} weights can't be computed with in {1}.", spec.name, compute),
            tr("Choose the dtype {0}, or leave it open.", " or ".join(spec.compute)),
        )
