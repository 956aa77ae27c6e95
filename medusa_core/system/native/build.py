"""Builds the compiled step for every system: `python -m medusa_core.system.native.build [--check]`.

One compiler, zig's, builds for all of them, on any of them, and gives the same bytes each time.
A record lies beside what ships: a hash of all that it was built of, and one of each library.
`--check` compares both, then builds into a temporary folder and compares each byte. The compiler
is in the extra `native`; users don't need it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from medusa_core.system.native.binding import library_suffix
from medusa_core.system.resources import native_dir

SOURCES = Path(__file__).parent / "src"
RECORD = "built.sha256"  # beside what ships: as sha256sum writes it
RECIPE = "sources, commands and compiler"  # the name of their hash in the record
ZIG_VERSION = "0.16.0"  # another one gives other bytes
FLAGS = (
    *("-O3", "-std=c11", "-shared", "-fPIC", "-s", "-fno-sanitize=all", "-fno-math-errno"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-psabi"),
    # Products and sums are fused where the sources say so, and nowhere else.
    "-ffp-contract=off",
    # Numbers are read as words, and words as numbers.
    "-fno-strict-aliasing",
)
_SANITIZED = (
    *("-O1", "-g", "-std=c11", "-shared", "-fPIC", "-pthread", "-fno-math-errno"),
    *("-ffp-contract=off", "-fno-strict-aliasing", "-Wno-psabi", "-fno-builtin-fma"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
)
_X86 = {
    "avx2": "x86_64_v3",
    "avx2vnni": "x86_64_v3+avxvnni",
    "avx512": "x86_64_v4",
    "avx512vnni": "x86_64_v4+avx512vnni",
    "avx512bf16": "x86_64_v4+avx512bf16+avx512vnni",
}
ARM = {"neon": "generic", "neondot": "generic+dotprod"}
# System, what zig calls it, and for each instruction set what zig calls the CPU.
_BUILDS = (
    ("linux", "linux-x86_64", "x86_64-linux-gnu.2.17", _X86),
    ("linux", "linux-aarch64", "aarch64-linux-gnu.2.17", ARM),
    ("win32", "windows-x86_64", "x86_64-windows-gnu", _X86),
    ("darwin", "macos-aarch64", "aarch64-macos.11.0", {"neon": "apple_m1"}),
)
_ANEW = "Run it without --check, and commit what it writes."


def main() -> int:
    """Build, or check what is built."""
    parser = argparse.ArgumentParser(
        prog="python -m medusa_core.system.native.build", description=__doc__
    )
    parser.add_argument("--check", action="store_true", help="compare with what ships")
    parser.add_argument(
        "--sanitize",
        type=Path,
        metavar="FILE",
        help="build for this machine with gcc or clang, address and undefined sanitizers",
    )
    parser.add_argument("--only", default="", help="one system, such as linux-x86_64")
    chosen = parser.parse_args()
    if chosen.sanitize is not None:
        build_sanitized(chosen.sanitize)
        return 0
    if chosen.check and (changed := changes(native_dir())):
        print(f"Changed since it was built: {', '.join(changed)}. {_ANEW}")
        return 1
    if lack := _compiler_lack():
        print(f"{lack}: pip install -c installer/constraints.txt -e '.[native]'")
        return 1
    if not chosen.check:
        build(native_dir(), chosen.only)
        if not chosen.only:  # else the others may be of older sources
            (native_dir() / RECORD).write_text(record_of(native_dir()), encoding="ascii")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder), chosen.only)
        differing = [path for path in built if not _ships(path, Path(folder))]
    for path in differing:
        print(f"{path.parent.name}/{path.name} isn't what the sources give. {_ANEW}")
    return 1 if differing else 0


def record_of(folder: Path) -> str:
    """The hashes of what libraries in a folder are built of, and of each library, a line each."""
    hashes = {RECIPE: hash_of_build()}
    suffixes = {library_suffix(system) for system, *_ in _BUILDS}
    for path in sorted(path for path in folder.glob("*/*") if path.suffix in suffixes):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        hashes[path.relative_to(folder).as_posix()] = digest
    return "".join(f"{digest}  {name}\n" for name, digest in hashes.items())


def changes(folder: Path) -> list[str]:
    """What differs from a folder's record; all of it where there is none."""
    path = folder / RECORD
    recorded = path.read_text(encoding="ascii").splitlines() if path.is_file() else []
    differing = set(record_of(folder).splitlines()) ^ set(recorded)
    return sorted({line.partition("  ")[2] for line in differing})


def build(to: Path, only: str = "") -> list[Path]:
    """Build the libraries for all systems.

    Args:
        to: Folder that takes a folder per system.
        only: The one system to build for.

    Returns:
        What was built.
    """
    built = []
    with tempfile.TemporaryDirectory() as scratch:
        # By names alone, within a copy: where the sources lie must not get into the libraries.
        sources = Path(scratch) / "src"
        shutil.copytree(SOURCES, sources)
        for system, folder, target, instruction_sets in _BUILDS:
            if only not in ("", folder):
                continue
            (to / folder).mkdir(parents=True, exist_ok=True)
            for name, cpu in instruction_sets.items():
                path = to / folder / f"{name}{library_suffix(system)}"
                made = sources / f"step{library_suffix(system)}"
                _compile(sources, made, target, cpu)
                shutil.copyfile(made, path)
                built.append(path)
    return built


def build_sanitized(path: Path, cpu: str = "native") -> None:
    """Build with address and undefined-behaviour sanitizers: a bad access ends the process.

    Run it with `MEDUSA_NATIVE=FILE LD_PRELOAD=$(gcc -print-file-name=libasan.so)`.

    Args:
        path: The library.
        cpu: Whose instructions it may use, as the compiler calls it.

    Raises:
        FileNotFoundError: There is neither gcc nor clang.
        subprocess.CalledProcessError: The sources can't be built.
    """
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("neither gcc nor clang is here: apt-get install gcc")
    files = sorted(str(file) for file in SOURCES.glob("*.c"))
    command = [compiler, *_SANITIZED, f"-march={cpu}", "-o", str(path), *files, "-lm"]
    subprocess.run(command, check=True)


def hash_of_build(folder: Path = SOURCES) -> str:
    """One hash of all that makes the libraries what they are.

    The compiler's version, each library's command with its flags, system and CPU, and the sources.
    """
    commands = [
        (folder_name, name, _command(target, cpu))
        for _, folder_name, target, instruction_sets in _BUILDS
        for name, cpu in instruction_sets.items()
    ]
    whole = hashlib.sha256(repr((ZIG_VERSION, commands)).encode())
    for path in sorted(folder.iterdir()):
        whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def _compiler_lack() -> str:
    """Why the compiler can't be used; empty if it can."""
    if importlib.util.find_spec("ziglang") is None:
        return "The compiler isn't here"
    version = metadata.version("ziglang")
    return "" if version == ZIG_VERSION else f"The compiler is zig {version}, not {ZIG_VERSION}"


def _compile(sources: Path, path: Path, target: str, cpu: str) -> None:
    files = sorted(file.name for file in sources.glob("*.c"))
    command = [sys.executable, *_command(target, cpu)]
    subprocess.run([*command, "-o", path.name, *files], cwd=sources, check=True)


def _command(target: str, cpu: str) -> tuple[str, ...]:
    """What Python is asked to build for a system and a CPU, without files."""
    return ("-m", "ziglang", "cc", *FLAGS, "-target", target, f"-mcpu={cpu}")


def _ships(path: Path, folder: Path) -> bool:
    shipped = native_dir() / path.relative_to(folder)
    return shipped.is_file() and shipped.read_bytes() == path.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
