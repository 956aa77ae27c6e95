"""Builds the compiled step for every system: `python -m medusa_core.system.native.build [--check]`.

One compiler, zig's, cross-compiles all of them reproducibly on any system. The record in their
folder has a hash of sources, commands and compiler, and one of each library. `--check` compares
both, then builds into a temporary folder and compares each byte. The compiler is in the extra
`native`; users don't need it.
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

from medusa_core.system.native import generate
from medusa_core.system.native.binding import library_suffix
from medusa_core.system.native.generate import SOURCES
from medusa_core.system.resources import native_dir

RECORD = "built.sha256"  # in the format of sha256sum
RECIPE = "sources, commands and compiler"  # name of their hash in the record
ZIG_VERSION = "0.16.0"  # another version gives other bytes
FLAGS = (
    *("-O3", "-std=c11", "-shared", "-fPIC", "-s", "-fno-sanitize=all", "-fno-math-errno"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-psabi"),
    # Only explicit fma() fuses products and sums, so that results don't depend on the compiler.
    "-ffp-contract=off",
    # Floats are accessed as integers and vice versa.
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
# sys.platform, folder, zig's target, and zig's CPU for each instruction set.
_BUILDS = (
    ("linux", "linux-x86_64", "x86_64-linux-gnu.2.17", _X86),
    ("linux", "linux-aarch64", "aarch64-linux-gnu.2.17", ARM),
    ("win32", "windows-x86_64", "x86_64-windows-gnu", _X86),
    ("darwin", "macos-aarch64", "aarch64-macos.11.0", {"neon": "apple_m1"}),
)
_ANEW = "Run it without --check, and commit what it writes."


def main() -> int:
    """Build the libraries, or check the existing ones."""
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
    if chosen.check and (changed := generate.outdated() + changes(native_dir())):
        print(f"Changed since it was built: {', '.join(changed)}. {_ANEW}")
        return 1
    if lack := _compiler_lack():
        print(f"{lack}: pip install -c installer/constraints.txt -e '.[native]'")
        return 1
    if not chosen.check:
        generate.write()
        build(native_dir(), chosen.only)
        if not chosen.only:  # else other systems' libraries may be older
            (native_dir() / RECORD).write_text(record_of(native_dir()), encoding="ascii")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder), chosen.only)
        differing = [path for path in built if not _ships(path, Path(folder))]
    for path in differing:
        print(f"{path.parent.name}/{path.name} isn't what the sources give. {_ANEW}")
    return 1 if differing else 0


def record_of(folder: Path) -> str:
    """Return the record of a folder: a line with the hash of the build, and one per library."""
    hashes = {RECIPE: hash_of_build()}
    suffixes = {library_suffix(system) for system, *_ in _BUILDS}
    for path in sorted(path for path in folder.glob("*/*") if path.suffix in suffixes):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        hashes[path.relative_to(folder).as_posix()] = digest
    return "".join(f"{digest}  {name}\n" for name, digest in hashes.items())


def changes(folder: Path) -> list[str]:
    """List the names that differ from a folder's record; all names if it has none."""
    path = folder / RECORD
    recorded = path.read_text(encoding="ascii").splitlines() if path.is_file() else []
    differing = set(record_of(folder).splitlines()) ^ set(recorded)
    return sorted({line.partition("  ")[2] for line in differing})


def build(to: Path, only: str = "") -> list[Path]:
    """Build the libraries for all systems.

    Args:
        to: Parent of the systems' folders.
        only: Folder name of a single system; empty for all.

    Returns:
        Paths of the libraries.
    """
    built = []
    with tempfile.TemporaryDirectory() as scratch:
        # In a copy, by relative names: paths must not get into the libraries.
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
    """Build with address and undefined-behaviour sanitizers.

    Run it with `MEDUSA_NATIVE=FILE LD_PRELOAD=$(gcc -print-file-name=libasan.so)`.

    Args:
        path: Path of the library.
        cpu: The compiler's name of the CPU.

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
    """Hash everything that determines the libraries: compiler version, commands and sources."""
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
    """Return why the compiler can't be used; empty if it can."""
    if importlib.util.find_spec("ziglang") is None:
        return "The compiler isn't here"
    version = metadata.version("ziglang")
    return "" if version == ZIG_VERSION else f"The compiler is zig {version}, not {ZIG_VERSION}"


def _compile(sources: Path, path: Path, target: str, cpu: str) -> None:
    """Compile the sources to a library."""
    files = sorted(file.name for file in sources.glob("*.c"))
    command = [sys.executable, *_command(target, cpu)]
    subprocess.run([*command, "-o", path.name, *files], cwd=sources, check=True)


def _command(target: str, cpu: str) -> tuple[str, ...]:
    """Return the compiler's command for a system and a CPU, without files."""
    return ("-m", "ziglang", "cc", *FLAGS, "-target", target, f"-mcpu={cpu}")


def _ships(path: Path, folder: Path) -> bool:
    """Whether a built file equals the shipped one."""
    shipped = native_dir() / path.relative_to(folder)
    return shipped.is_file() and shipped.read_bytes() == path.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
