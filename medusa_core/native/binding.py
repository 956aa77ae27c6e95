"""Loads the library that fits this machine, and says how its functions are called.

The structures mirror those of the headers in `src`.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from ctypes import (
    POINTER,
    Structure,
    addressof,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path

import torch

from medusa_core.resources import native_dir

log = logging.getLogger(__name__)

PANEL = 32
_OFF = "MEDUSA_NATIVE"  # set to 0 to do without
# Of what there are libraries, and what the CPU must have for it.
_AVX512 = ("avx512_f", "avx512_bw", "avx512_cd", "avx512_dq", "avx512_vl")
_INSTRUCTIONS = {
    "avx512bf16": (*_AVX512, "avx512_vnni", "avx512_bf16"),
    "avx512vnni": (*_AVX512, "avx512_vnni"),
    "avx512": _AVX512,
    "avx2vnni": ("avx2", "fma3", "avx_vnni"),
    "avx2": ("avx2", "fma3"),
}
# A second library is taken where it needs less than this part of the first one's time.
_CLEARLY, _TURNS = 0.8, 100


class PoolStruct(Structure):
    """`Pool` of pool.h."""

    _fields_ = (
        ("piece", c_void_p),
        ("job", c_void_p),
        ("claims", c_uint64),
        ("done", c_int32),
        ("closed", c_int32),
    )


class LinearStruct(Structure):
    """`Linear` of linear.h."""

    _fields_ = (
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("scale", c_void_p),
        ("outputs", c_int32),
        ("inputs", c_int32),
        ("kind", c_int32),
        ("reserved", c_int32),
    )


class BlockStruct(Structure):
    """`Block` of decoder.h."""

    _fields_ = (
        ("qkv", LinearStruct),
        ("output", LinearStruct),
        ("gate_up", LinearStruct),
        ("down", LinearStruct),
        ("attention_norm", c_void_p),
        ("mlp_norm", c_void_p),
        ("head_norm", c_void_p),
    )


class DecoderStruct(Structure):
    """`Decoder` of decoder.h."""

    _fields_ = (
        ("blocks", POINTER(BlockStruct)),
        ("final_norm", c_void_p),
        ("embedding", c_void_p),
        ("embedding_is_half", c_int32),
        ("layers", c_int32),
        ("hidden", c_int32),
        ("inner", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("eps", c_float),
        ("reserved", c_int32),
    )


class CacheStruct(Structure):
    """`Cache` of cache.h."""

    _fields_ = (
        ("words", c_void_p),
        ("capacity", c_int64),
        ("layers", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("is_half", c_int32),
    )


class PassStruct(Structure):
    """`Pass` of decoder.h, its `Rows` of attention.h first."""

    _fields_ = (
        ("rows", c_int32),
        ("length", c_int32),
        ("parents", c_void_p),
        ("depths", c_void_p),
        ("token_ids", c_void_p),
        ("cache", c_void_p),
        ("turns", c_void_p),
        ("first_wanted", c_int32),
        ("workers", c_int32),
        ("scratch", c_void_p),
        ("hidden", c_void_p),
    )


class HeadsStruct(Structure):
    """`Heads` of heads.h."""

    _fields_ = (
        ("first", POINTER(LinearStruct)),
        ("rest", POINTER(LinearStruct)),
        ("projections", POINTER(LinearStruct)),
        ("embedding", c_void_p),
        ("hidden", c_int32),
        ("columns", c_int32),
        ("num_heads", c_int32),
        ("num_rest", c_int32),
        ("is_shared", c_int32),
        ("embedding_is_half", c_int32),
    )


class PhrasesStruct(Structure):
    """`Phrases` of phrases.h."""

    _fields_ = (
        ("keys", c_void_p),
        ("starts", c_void_p),
        ("tokens", c_void_p),
        ("chances", c_void_p),
        ("buckets", c_void_p),
        ("shift", c_int32),
        ("longest", c_int32),
    )


class NodeStruct(Structure):
    """`Node` of growth.h."""

    _fields_ = (
        ("worth", c_double),
        ("chance", c_double),
        ("parent", c_int32),
        ("depth", c_int32),
        ("token", c_int32),
        ("marks", c_int32),
    )


class CandidatesStruct(Structure):
    """`Candidates` of growth.h."""

    _fields_ = (
        ("tokens", c_void_p),
        ("chances", c_void_p),
        ("counts", c_void_p),
        ("weight", c_double),
        ("size", c_int32),
        ("mark", c_int32),
    )


class GrowthStruct(Structure):
    """`Growth` of growth.h."""

    _fields_ = (
        ("prices", c_void_p),
        ("floors", c_void_p),
        ("least", c_double),
        ("promised", c_double),
        ("nodes", c_void_p),
        ("order", c_void_p),
        ("open", c_void_p),
        ("paths", c_void_p),
        ("told", c_void_p),
        ("chances", c_void_p),
        ("rows", c_int32),
        ("count", c_int32),
        ("num_open", c_int32),
        ("level", c_int32),
    )


_SIGNATURES: dict[str, tuple[tuple[type, ...], type | None]] = {
    "pass_scratch": ((c_void_p, c_int32, c_int32, c_int32), c_int64),
    "forward": ((c_void_p, c_void_p, c_void_p), None),
    "rank": (
        (c_void_p, c_void_p, c_int64, c_int32, c_int32, *(c_void_p,) * 5),
        None,
    ),
    "walk_best": (
        (c_void_p, c_int64, c_void_p, c_void_p, c_int32, c_void_p, c_void_p),
        c_int32,
    ),
    "probabilities": ((c_void_p, c_int64, c_void_p, c_void_p, c_int32, c_void_p), None),
    "read_choices": ((c_void_p, c_int64, c_void_p, c_int32, c_void_p), None),
    "linear": (
        (c_void_p, c_void_p, c_void_p, c_void_p, c_int32, c_void_p, c_void_p),
        None,
    ),
    "grow_begin": ((c_void_p,), None),
    "grow_level": ((c_void_p, c_void_p, c_int32), c_int32),
    "grow_end": ((c_void_p,), c_int32),
    "follow": (
        (c_void_p, c_void_p, c_int64, c_void_p, c_int32, c_int32, *(c_void_p,) * 3, c_int32),
        c_int32,
    ),
    "keep_rows": ((c_void_p, c_int64, c_void_p, c_int64), None),
    "serve": ((c_void_p, c_int32), None),
}


_SHORT = (
    *("pass_scratch", "walk_best", "keep_rows", "probabilities", "read_choices"),
    *("grow_begin", "grow_level", "grow_end", "follow"),
)


@cache
def native_library() -> ctypes.CDLL | None:
    """The library for this machine, or None where there is none.

    `MEDUSA_NATIVE=0` in the environment does without; any other value is the name of the
    instruction set to take, such as `avx2`.
    """
    wanted = os.environ.get(_OFF, "")
    if wanted == "0":
        log.info("no compiled step: %s is 0", _OFF)
        return None
    folder, suffix = native_dir() / system_name(), library_suffix()
    names = [wanted] if wanted else instruction_sets()
    paths = [path for name in names if (path := folder / f"{name}{suffix}").is_file()]
    if wanted and not paths:
        known = ", ".join(sorted(path.stem for path in folder.glob(f"*{suffix}")))
        log.warning("%s=%s names no compiled step; there are: %s", _OFF, wanted, known or "none")
    try:
        library = fastest([open_library(path) for path in paths[:2]])
    except OSError as error:
        log.warning("the compiled step can't be loaded, decoding is slower: %s", error)
        return None
    log.info("the compiled step: %s", "none for this machine" if library is None else library._name)
    return library


def fastest(libraries: Sequence[ctypes.CDLL]) -> ctypes.CDLL | None:
    """The first one, or whichever clearly multiplies faster; None of none.

    What an instruction is worth can't be told by its name: products of bfloat16 are twice as fast
    as those of floats on some processors, and half as fast on others.
    """
    if len(libraries) < 2:
        return libraries[0] if libraries else None
    inputs, outputs, rows = 256, 512, 4
    weight = torch.zeros(outputs, inputs, dtype=torch.bfloat16)
    layer = LinearStruct(weight=weight.data_ptr(), outputs=outputs, inputs=inputs, kind=1)
    x, packed = torch.zeros(rows, inputs), torch.empty(rows, inputs)
    y = torch.empty(rows, outputs)
    arguments = (addressof(layer), x.data_ptr(), packed.data_ptr(), rows, None, y.data_ptr())

    def time_of(library: ctypes.CDLL) -> float:
        begin = time.perf_counter()
        library.linear(None, *arguments)
        return time.perf_counter() - begin

    turns = [[time_of(library) for library in libraries] for _ in range(_TURNS)]
    times = [min(column) for column in zip(*turns, strict=True)]
    best = min(range(len(times)), key=times.__getitem__)
    return libraries[best if times[best] < _CLEARLY * times[0] else 0]


def system_name(system: str = sys.platform, machine: str = "") -> str:
    """The folder of the libraries for a system, such as `linux-x86_64`."""
    machine = (machine or platform.machine()).lower()
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{ {'win32': 'windows', 'darwin': 'macos'}.get(system, system) }-{architecture}"


def library_suffix(system: str = sys.platform) -> str:
    """What shared libraries are called at the end."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(system, ".so")


def instruction_sets() -> list[str]:
    """Those that this CPU has, of which there are libraries; mostly the best first."""
    if system_name().endswith("aarch64"):
        return ["neon"]
    # torch 2.11 can't say: no library then.
    has: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return [name for name, needed in _INSTRUCTIONS.items() if all(has.get(one) for one in needed)]


def open_library(path: Path) -> ctypes.CDLL:
    """A library with its functions declared.

    Raises:
        OSError: It isn't one that this system can load.
    """
    library = ctypes.CDLL(str(path))
    holding = ctypes.PyDLL(str(path))
    for name, (arguments, result) in _SIGNATURES.items():
        # In a call of microseconds nobody else should take the interpreter's lock: getting it back
        # may take milliseconds.
        function = getattr(holding if name in _SHORT else library, name)
        function.argtypes, function.restype = arguments, result
        setattr(library, name, function)
    return library
