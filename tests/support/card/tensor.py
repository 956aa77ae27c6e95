"""Tensors that say they lie on a card, and whose numbers lie in the computer's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.card.attention import check_attention
from tests.support.card.journal import Journal
from tests.support.card.memory import CardMemory
from tests.support.card.tape import Tape, Work

CARD = torch.device("cuda", 0)
aten = torch.ops.aten
Call = Callable[..., Any]

# They wait for the card without saying so: what decoding needs is brought by counted copies.
_SYNCS = (
    aten._local_scalar_dense,
    aten.is_nonzero,
    aten.nonzero,
    aten.masked_select,
    aten.equal,
    aten.unique_dim,
    aten._unique2,
)


_ALLOCATIONS = (
    aten.empty,
    aten.empty_like,
    aten.empty_strided,
    aten.new_empty,
    aten.detach,
    aten._unsafe_view,
)


class FakeCudaError(RuntimeError):
    """Raised for operations that a real card would refuse."""


class CardTensor(Tensor):
    """A tensor on the fake card.

    Attributes:
        inside: Its numbers, with the same shape, strides and offset.
    """

    inside: Tensor

    @staticmethod
    def __new__(cls, real: Tensor) -> CardTensor:
        made: CardTensor = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            real.size(),
            strides=real.stride(),
            storage_offset=real.storage_offset(),
            dtype=real.dtype,
            device=CARD,
        )
        made.inside = real
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"CardTensor({self.inside!r})"

    def data_ptr(self) -> int:
        return self.inside.data_ptr()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise FakeCudaError("A tensor on a card can't become an array: copy it first.")

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise FakeCudaError(f"{func} met a tensor of a card that isn't there any more.")


class CardMode(TorchDispatchMode):
    """Runs operations on the fake card.

    Attributes:
        journal: What was copied and what kernels were given.
        memory: What tensors take.
        kernels: bitsandbytes' functions for CUDA by the names of their operators.
    """

    def __init__(self, capability: tuple[int, int], total_bytes: int) -> None:
        super().__init__()
        self.journal = Journal()
        self.memory = CardMemory(total_bytes)
        self.kernels: dict[str, Call] = {}
        self._tape: Tape | None = None
        self._lets_wait = False
        self._capability = capability

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Allow reading scalars from the card, as while a model is loaded."""
        self._lets_wait = True
        try:
            yield
        finally:
            self._lets_wait = False

    @contextmanager
    def recording(self) -> Iterator[Tape]:
        """Record operations, and refuse those that a graph can't capture."""
        tape = self._tape = Tape()
        try:
            yield tape
        finally:
            self._tape = None

    def launch(self, work: Work, computes: bool = True) -> Any:
        """Run something that computes in the computer's memory as work of the card."""
        self.journal.num_launched += 1
        self.journal.num_computing += computes
        result = work()
        if self._tape is not None:
            self._tape.add(work, result)
        return result

    def attend(
        self, q: Tensor, keys: Tensor, values: Tensor, attn_mask: Tensor | None = None, **more: Any
    ) -> Tensor:
        """`scaled_dot_product_attention`, checked as the card's kernels check."""
        _check_devices("scaled_dot_product_attention", (q, keys, values, attn_mask))
        kernel = check_attention(self._capability, q, keys, values, attn_mask)
        self.journal.attention(kernel, q, keys, values, attn_mask)
        given = [None if t is None else _real(t) for t in (q, keys, values, attn_mask)]

        def mixed() -> Tensor:
            wide = [None if t is None else t.float() if t.itemsize < 4 else t for t in given]
            out = F.scaled_dot_product_attention(*wide[:3], attn_mask=wide[3], **more)
            return out.to(q.dtype)

        return self._new(self.launch(mixed))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        given = _leaves((*args, *kwargs.values()))
        leaves = [leaf for leaf in given if isinstance(leaf, Tensor)]
        if not any(isinstance(leaf, CardTensor) or leaf == CARD for leaf in _places(given)):
            return func(*args, **kwargs)
        if func.namespace == "bitsandbytes":
            _check_devices(func, leaves)
            with self:
                return self._quantized(func)(*args, **kwargs)
        if func._can_decompose():  # under inference mode such operations come whole
            with self:
                return func.decompose(*args, **kwargs)
        # What is made here serves inside inference mode and outside.
        with torch.inference_mode(False), torch.no_grad():
            return self._run(func, args, kwargs, leaves)

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any], leaves: list[Tensor]) -> Any:
        packet = func.overloadpacket
        if not self._lets_wait and (packet in _SYNCS or _picks(packet, args)):
            raise FakeCudaError(f"{func} waits for the card: bring what is needed by one copy.")
        if packet is aten._to_copy:
            return self._to_copy(func, args, kwargs)
        if packet is aten.copy_:
            return self._copy(func, args, kwargs)
        _check_devices(func, leaves)
        given = _each(_real, args)
        given_named = {name: _each(_real, value) for name, value in kwargs.items()}
        computes = packet not in _ALLOCATIONS and not _is_view(func)
        result = self.launch(lambda: func(*given, **given_named), computes)
        return self._on_card(result, leaves)

    def _new(self, real: Tensor) -> CardTensor:
        with torch.inference_mode(False):
            made = CardTensor(real)
        self.memory.hold(made, real)
        return made

    def _on_card(self, result: Any, given: list[Tensor]) -> Any:
        """Results as tensors of the card: those that were given stay themselves."""
        known = {id(outer.inside): outer for outer in given if isinstance(outer, CardTensor)}

        def wrapped(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            return known[id(leaf)] if id(leaf) in known else self._new(leaf)

        return _each(wrapped, result)

    def _quantized(self, func: Any) -> Call:
        name = func._schema.name
        overload = func._schema.overload_name
        full = f"{name}.{overload}" if overload else name
        if full not in self.kernels:
            raise FakeCudaError(f"bitsandbytes has no {full} for CUDA.")
        return self.kernels[full]

    def _to_copy(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Tensor:
        source = args[0]
        device = torch.device(kwargs.pop("device", None) or source.device)
        self._count(source.device, device, source)
        real: Tensor = self.launch(lambda: func(_real(source), **kwargs))
        return self._new(real) if device.type == "cuda" else real

    def _copy(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Tensor:
        target, source, *rest = args
        # Torch hands a number to the kernel itself.
        if source.dim() or source.device.type != "cpu":
            self._count(source.device, target.device, source)
        self.launch(lambda: func(_real(target), _real(source), *rest, **kwargs))
        copied: Tensor = target
        return copied

    def _count(self, source: torch.device, target: torch.device, copied: Tensor) -> None:
        if source.type == target.type:
            return
        if self._tape is not None:
            raise FakeCudaError("A copy from or to the host can't be recorded in a graph.")
        self.journal.copy(is_upload=target.type == "cuda", num_bytes=copied.nbytes)


class CardFunctions(TorchFunctionMode):
    """Torch function mode for operations to intercept before torch decomposes them: creation of
    tensors, and attention.
    """

    def __init__(self, mode: CardMode) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and _is_card(kwargs.get("device")):
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        if func is F.scaled_dot_product_attention and isinstance(args[0], CardTensor):
            return self._mode.attend(*args, **kwargs)
        return func(*args, **kwargs)


def _leaves(given: Iterable[Any]) -> list[Any]:
    """Yield all leaves of arguments, including those in lists."""
    found: list[Any] = []
    for one in given:
        if isinstance(one, list | tuple):
            found += _leaves(one)
        else:
            found.append(one)
    return found


def _each(change: Call, value: Any) -> Any:
    """Return arguments with a function applied to each leaf."""
    if isinstance(value, list | tuple):
        changed = [_each(change, one) for one in value]
        return tuple(changed) if isinstance(value, tuple) else changed
    return change(value)


def _is_view(func: Any) -> bool:
    """Return whether an operation returns its input in another shape."""
    returned = [one.alias_info for one in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returned)


def _picks(packet: Any, args: Any) -> bool:
    """Return whether the size of an indexing result is known to the card only."""
    return packet in (aten.index, aten.index_put_) and any(
        index is not None and index.dtype == torch.bool for index in args[1]
    )


def _is_card(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def _places(leaves: list[Any]) -> Iterator[Any]:
    """Tensors and devices; a card without a number is the first."""
    for leaf in leaves:
        if isinstance(leaf, torch.device):
            yield CARD if _is_card(leaf) else leaf
        elif isinstance(leaf, CardTensor):
            yield leaf


def _real(leaf: Any) -> Any:
    if isinstance(leaf, torch.device):
        return torch.device("cpu")
    return leaf.inside if isinstance(leaf, CardTensor) else leaf


def _check_devices(func: Any, leaves: Any) -> None:
    """Check that all tensors of an operation are on the card, except for scalars."""
    for leaf in leaves:
        if isinstance(leaf, Tensor) and not isinstance(leaf, CardTensor) and leaf.dim():
            raise FakeCudaError(
                f"{func}: a tensor {tuple(leaf.shape)} lies in the computer's memory, another on "
                "the card."
            )
