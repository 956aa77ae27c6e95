"""The format of a fused layer whose pieces have different formats, as in mixed GGUF files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from medusa_core.models.quant.format import Hardware, QuantSpec, TensorKind

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear


def joined_format(pieces: Sequence[tuple[QuantSpec, int]]) -> QuantSpec:
    """Make the format of a matrix whose consecutive rows have different formats.

    Its tensors are those of the pieces, named `NUMBER.KEY`.

    Args:
        pieces: Formats and their numbers of rows, from the top.
    """
    specs = [spec for spec, _ in pieces]

    def tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
        """Return name, dtype and shape of the tensors of all pieces."""
        return {
            f"{number}.{key}": kind
            for number, (spec, count) in enumerate(pieces)
            for key, kind in spec.tensors(count, columns, compute).items()
        }

    def quantize(weight: Tensor) -> dict[str, Tensor]:
        """Quantize each piece's rows in its own format."""
        import torch

        parts = torch.split(weight, [count for _, count in pieces])
        return join_tensors([spec.quantize(part) for spec, part in zip(specs, parts, strict=True)])

    def of_pieces(
        tensors: Mapping[str, Tensor],
    ) -> Iterator[tuple[QuantSpec, int, dict[str, Tensor]]]:
        """Yield format, rows and tensors of each piece."""
        for number, (spec, count) in enumerate(pieces):
            lead = f"{number}."
            named = {k.removeprefix(lead): t for k, t in tensors.items() if k.startswith(lead)}
            yield spec, count, named

    def build(
        tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
    ) -> QuantLinear:
        """Make a layer that concatenates the outputs of all pieces."""
        from medusa_core.models.quant.combined_linear import join_linears

        layers = [spec.build(one, count, None, compute) for spec, count, one in of_pieces(tensors)]
        return join_linears(layers, bias)

    def dequantize(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
        """Dequantize all pieces to float32. [rows, columns]"""
        import torch

        parts = [spec.dequantize(one, n, columns).float() for spec, n, one in of_pieces(tensors)]
        return torch.cat(parts)

    return QuantSpec(
        name="+".join(dict.fromkeys(spec.name for spec in specs)),
        label=" + ".join(dict.fromkeys(spec.label for spec in specs)),
        bits=sum(spec.bits * count for spec, count in pieces) / sum(count for _, count in pieces),
        is_dense=False,
        compiled=all(spec.compiled for spec in specs),
        nbytes=lambda _, columns, device: sum(
            spec.nbytes(count, columns, device) for spec, count in pieces
        ),
        supports=lambda _, columns, device: all(
            spec.supports(count, columns, device) for spec, count in pieces
        ),
        limitation=lambda hardware: _limitation(specs, hardware),
        compute=_common([spec.compute for spec in specs if spec.compute]),
        tensors=tensors,
        quantize=quantize,
        build=build,
        dequantize=dequantize,
        can_quantize=all(spec.can_quantize for spec in specs),
    )


def join_tensors(pieces: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Collect the tensors of all pieces under the names that `joined_format` gives them."""
    return {f"{n}.{key}": one for n, piece in enumerate(pieces) for key, one in piece.items()}


def _limitation(specs: Sequence[QuantSpec], hardware: Hardware) -> str:
    """Return the first piece's limitation on this hardware; empty if there is none."""
    return next((reason for spec in specs if (reason := spec.limitation(hardware))), "")


def _common(computes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the compute dtypes that all pieces allow, in the order of the first."""
    return tuple(name for name in computes[0] if all(name in other for other in computes[1:]))
