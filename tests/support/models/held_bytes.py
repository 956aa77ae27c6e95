"""How many bytes a model holds."""

from torch import Tensor


def held_bytes(roots: list[object]) -> int:
    """Bytes of all tensors that layers hold, each memory once."""
    seen: set[int] = set()
    sizes: dict[int, int] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Tensor):
            place = id(one) if one.is_mkldnn else one.untyped_storage().data_ptr()
            is_whole = one.is_mkldnn or not one.untyped_storage().nbytes()
            nbytes = one.numel() * one.itemsize if is_whole else one.untyped_storage().nbytes()
            sizes[place] = nbytes
        waiting += parts_of(one)
    return sum(sizes.values())


def parts_of(one: object) -> list[object]:
    """Return the parts of a layer's object."""
    if isinstance(one, dict):
        return list(one.values())
    if isinstance(one, list | tuple):
        return list(one)
    if not isinstance(one, Tensor) and not type(one).__module__.startswith(
        ("medusa_core", "bitsandbytes")
    ):
        return []
    slots = [getattr(one, name, None) for name in getattr(type(one), "__slots__", ())]
    return [*getattr(one, "__dict__", {}).values(), *slots]
