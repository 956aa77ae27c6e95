"""One layer of parts in several weight formats, one below the other: what mixed files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    TensorKind,
)

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear

JoinedPieces = Sequence[tuple[QuantSpec, int]]


def joined_format(pieces: JoinedPieces) -> QuantSpec:
    """The format of a layer whose first rows have one format, and the next ones another.

    Its tensors are those of the pieces, their names led by the piece's number and a dot.

    Args:
        pieces: Formats, and how many rows have each, from the top.
    """
    specs = [spec for spec, _ in pieces]

    def nbytes(rows: int, columns: int, device: str) -> int:
        return sum(spec.nbytes(count, columns, device) for spec, count in pieces)

    def takes(rows: int, columns: int, device: str) -> bool:
        return all(spec.takes(count, columns, device) for spec, count in pieces)

    def lack(hardware: Hardware) -> str:
        return next((reason for spec in specs if (reason := spec.lack(hardware))), "")

    def tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
        return {
            f"{number}.{key}": kind
            for number, (spec, count) in enumerate(pieces)
            for key, kind in spec.tensors(count, columns, compute).items()
        }

    def quantize(weight: Tensor) -> dict[str, Tensor]:
        made: dict[str, Tensor] = {}
        first = 0
        for number, (spec, count) in enumerate(pieces):
            made |= led(number, spec.quantize(weight[first : first + count]))
            first += count
        return made

    def build(
        tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
    ) -> QuantLinear:
        from medusa_core.models.quant.joined_linear import join

        layers = [
            spec.build(_of_piece(number, tensors), count, None, compute)
            for number, (spec, count) in enumerate(pieces)
        ]
        return join(layers, bias)

    def numbers(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
        import torch

        found = [
            spec.numbers(_of_piece(number, tensors), count, columns).float()
            for number, (spec, count) in enumerate(pieces)
        ]
        return torch.cat(found)

    return QuantSpec(
        name="+".join(dict.fromkeys(spec.name for spec in specs)),
        label=" + ".join(dict.fromkeys(spec.label for spec in specs)),
        bits=sum(spec.bits * count for spec, count in pieces) / sum(count for _, count in pieces),
        is_dense=False,
        compiled=all(spec.compiled for spec in specs),
        nbytes=nbytes,
        takes=takes,
        lack=lack,
        compute=_shared([spec.compute for spec in specs if spec.compute]),
        tensors=tensors,
        quantize=quantize,
        build=build,
        numbers=numbers,
        is_made=all(spec.is_made for spec in specs),
    )


def led(number: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A piece's tensors under the names that they have among all."""
    return {f"{number}.{key}": tensor for key, tensor in tensors.items()}


def _of_piece(number: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    lead = f"{number}."
    return {
        key.removeprefix(lead): tensor for key, tensor in tensors.items() if key.startswith(lead)
    }


def _shared(computes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all of them may be computed in, in the order of the first."""
    return tuple(name for name in computes[0] if all(name in one for one in computes[1:]))
