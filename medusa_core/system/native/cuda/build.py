"""Builds the CUDA kernels: `python -m medusa_core.system.native.cuda.build [--check]`.

NVRTC compiles them for every generation of cards, without a card, a driver or a CUDA toolkit. A
record beside the results holds a hash of all that they were built of, and one of each file;
`--check` compares both and builds nothing. NVRTC is in the extra `cuda-build`; users don't need it.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path

from medusa_core.system.resources import native_dir

SOURCES = Path(__file__).parent
NVRTC_VERSION = (12, 9)  # the last that compiles for Pascal
ARCHITECTURES = (61, 75, 80, 86, 89, 90, 120)
# Cards of later generations compile this at first use; their driver must know PTX of CUDA 12.9.
PTX_ARCHITECTURE = 75
RECORD = "built.sha256"
_RECIPE = "sources and options"  # the name of their hash in the record
_OPTIONS = ("--std=c++17", "-default-device")
_LIBRARY = "libnvrtc.so.12"


class _Nvrtc:
    """NVRTC by its C interface."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        numbers = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(*(ctypes.byref(number) for number in numbers))
        self.version = (numbers[0].value, numbers[1].value)

    def compile(self, source: Path, architecture: str) -> bytes:
        """Compile a source, which may include the headers beside it.

        Args:
            source: A .cu file.
            architecture: `sm_86` for a cubin, `compute_75` for PTX.

        Raises:
            RuntimeError: It doesn't compile; with the compiler's log.
        """
        headers = sorted(source.parent.glob("*.cuh"))
        texts = (ctypes.c_char_p * len(headers))(*(path.read_bytes() for path in headers))
        names = (ctypes.c_char_p * len(headers))(*(path.name.encode() for path in headers))
        program = ctypes.c_void_p()
        self._library.nvrtcCreateProgram(
            ctypes.byref(program), source.read_bytes(), source.name.encode(),
            len(headers), texts, names,
        )  # fmt: skip
        options = [f"--gpu-architecture={architecture}", *_OPTIONS]
        encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = self._library.nvrtcCompileProgram(program, len(options), encoded)
        if status:
            log = self._output(program, "ProgramLog").decode(errors="replace")
            raise RuntimeError(f"{source.name} for {architecture}:\n{log}")
        built = self._output(program, "CUBIN" if architecture.startswith("sm_") else "PTX")
        self._library.nvrtcDestroyProgram(ctypes.byref(program))
        return built

    def _output(self, program: ctypes.c_void_p, kind: str) -> bytes:
        """Return the log or binary of a compiled program."""
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{kind}")(program, data)
        return data.raw


def main() -> int:
    """Build the kernels, or with `--check` compare them with their record."""
    parser = argparse.ArgumentParser(
        prog="python -m medusa_core.system.native.cuda.build", description=__doc__
    )
    parser.add_argument("--check", action="store_true", help="compare hashes, build nothing")
    chosen = parser.parse_args()
    folder = native_dir() / "cuda"
    if chosen.check:
        changed = changes(folder)
        if changed:
            print(f"Changed since it was built: {', '.join(changed)}. Run it without --check.")
        return 1 if changed else 0
    nvrtc = _find_nvrtc()
    if nvrtc is None or nvrtc.version != NVRTC_VERSION:
        print("NVRTC 12.9 is missing: pip install -c installer/constraints.txt -e '.[cuda-build]'")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(SOURCES.glob("*.cu")):
        for name, architecture in targets(source.stem):
            built = nvrtc.compile(source, architecture)
            (folder / name).write_bytes(lzma.compress(built, preset=9))
            print(f"{name}: {len(built):,} bytes")
    (folder / RECORD).write_text(record_of(folder), encoding="ascii")
    return 0


def targets(stem: str) -> Iterator[tuple[str, str]]:
    """Yield the file and NVRTC's name of every architecture that a source is built for."""
    for number in ARCHITECTURES:
        yield f"{stem}_sm{number}.cubin.xz", f"sm_{number}"
    yield f"{stem}_compute{PTX_ARCHITECTURE}.ptx.xz", f"compute_{PTX_ARCHITECTURE}"


def changes(folder: Path) -> list[str]:
    """Return what differs from a folder's record; everything if there is none."""
    path = folder / RECORD
    recorded = path.read_text(encoding="ascii").splitlines() if path.is_file() else []
    differing = set(record_of(folder).splitlines()) ^ set(recorded)
    return sorted({line.partition("  ")[2] for line in differing})


def record_of(folder: Path) -> str:
    """Return the hashes of the sources with their options and of each built file, a line each."""
    recipe = hashlib.sha256(repr((NVRTC_VERSION, ARCHITECTURES, _OPTIONS)).encode())
    for path in sorted(SOURCES.glob("*.cu*")):
        recipe.update(path.name.encode() + b"\0" + path.read_bytes())
    hashes = {_RECIPE: recipe.hexdigest()}
    for path in sorted(folder.glob("*.xz")):
        hashes[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return "".join(f"{digest}  {name}\n" for name, digest in hashes.items())


def _find_nvrtc() -> _Nvrtc | None:
    """Return the NVRTC of the installed package, if it is installed."""
    found = importlib.util.find_spec("nvidia")
    for place in () if found is None else found.submodule_search_locations or ():
        path = Path(place) / "cuda_nvrtc" / "lib" / _LIBRARY
        if path.is_file():
            return _Nvrtc(path)
    return None


if __name__ == "__main__":
    sys.exit(main())
