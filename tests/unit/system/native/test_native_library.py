"""Libraries of the compiled step: built from what is here, and the right one is chosen."""

import ctypes
import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import cast

import pytest
import torch

from medusa_core.models.blocks.spec import Activation, Scoring
from medusa_core.system.native import binding as native
from medusa_core.system.native import build as building
from medusa_core.system.native import constants, generate, structs
from medusa_core.system.native.binding import (
    library_suffix,
    native_library,
    open_library,
    system_name,
)
from medusa_core.system.native.build import (
    RECORD,
    SOURCES,
    ZIG_VERSION,
    build,
    changes,
    hash_of_build,
    main,
)
from medusa_core.system.resources import native_dir
from tests.support.models.natives import each_library, libraries

PYPROJECT = Path(__file__).parents[4] / "pyproject.toml"


def test_this_machine_has_a_compiled_step() -> None:
    # If this fails on some machine, all else still works there, but slower.
    assert native_library() is not None
    assert all(path.is_file() for path in libraries())


def test_shipped_libraries_match_the_sources() -> None:
    assert changes(native_dir()) == [], "run python -m medusa_core.system.native.build, and commit"
    recorded = (native_dir() / RECORD).read_text(encoding="ascii").splitlines()
    assert len(recorded) == 1 + sum(len(sets) for *_, sets in building._BUILDS)


# What a check is to find; each tells what it changed.


def planted_bytes(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = ships / "linux-x86_64" / "avx2.so"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    return "linux-x86_64/avx2.so"


def planted_library(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (ships / "linux-aarch64" / "sve.so").write_bytes(b"built elsewhere")
    return "linux-aarch64/sve.so"


def lost_library(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (ships / "macos-aarch64" / "neon.dylib").unlink()
    return "macos-aarch64/neon.dylib"


def lost_record(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (ships / RECORD).unlink()
    return "windows-x86_64/avx2.dll"


def other_flag(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(building, "FLAGS", (*building.FLAGS, "-ffast-math"))
    return building.RECIPE


def other_compiler(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(building, "ZIG_VERSION", "0.17.0")
    return building.RECIPE


def other_target(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (system, folder, _, sets), *others = building._BUILDS
    first = (system, folder, "x86_64-linux-gnu.2.31", sets)
    monkeypatch.setattr(building, "_BUILDS", (first, *others))
    return building.RECIPE


def other_source(ships: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    sources = copytree(SOURCES, ships / "src")
    (sources / "abi.c").write_text("/* another */", encoding="ascii")
    monkeypatch.setattr(building, "hash_of_build", partial(hash_of_build, sources))
    return building.RECIPE


@pytest.mark.parametrize(
    "plant",
    [
        *(planted_bytes, planted_library, lost_library, lost_record),
        *(other_flag, other_compiler, other_target, other_source),
    ],
)
def test_a_change_without_a_build_is_detected_without_a_compiler(
    plant: Callable[[Path, pytest.MonkeyPatch], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ships = copytree(native_dir(), tmp_path / "native")
    changed = plant(ships, monkeypatch)
    monkeypatch.setattr(building, "native_dir", lambda: ships)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.argv", ["build", "--check"])
    assert main() == 1
    assert changed in capsys.readouterr().out.split("Run it")[0]


def test_a_build_without_its_compiler_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.argv", ["build", "--check"])
    assert main() == 1
    assert "pip install" in capsys.readouterr().out


def test_a_build_by_another_compiler_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.15.2")
    monkeypatch.setattr("sys.argv", ["build", "--check"])
    assert main() == 1
    assert f"zig 0.15.2, not {ZIG_VERSION}: pip install" in capsys.readouterr().out


def test_the_installed_compiler_is_the_one_of_the_build() -> None:
    reported = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    assert reported["project"]["optional-dependencies"]["native"] == [f"ziglang=={ZIG_VERSION}"]


@pytest.mark.slow
def test_the_build_is_reproducible(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="the compiler isn't installed")
    built = build(tmp_path, system_name())
    assert built
    for path in built:
        shipped = native_dir() / path.relative_to(tmp_path)
        assert shipped.read_bytes() == path.read_bytes()


def test_without_a_library_torch_runs_the_step(tmp_path: Path) -> None:
    """In a process of its own, as a library is chosen once."""
    script = (
        "from medusa_core.api import demo_model\n"
        "from medusa_core.loading.load import load_target\n"
        "print(type(load_target(*demo_model()).runner).__name__)\n"
    )
    environment = {**os.environ, "MEDUSA_NATIVE": "0", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["ResidentRunner"]


def test_a_library_that_cannot_be_loaded_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / system_name()
    folder.mkdir()
    for name in native.instruction_sets():
        (folder / f"{name}{library_suffix()}").write_bytes(b"no library")
    monkeypatch.setattr(native, "native_dir", lambda: tmp_path)
    assert native_library.__wrapped__() is None
    assert "can't be loaded" in caplog.text


def test_a_library_of_other_sources_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Structures that differ by a field would be read beyond their end."""
    monkeypatch.setattr(structs, "STRUCTS", structs.STRUCTS[:-1])
    assert native_library.__wrapped__() is None
    assert "was built from other sources, which differ in Growth, Growth.row_costs" in caplog.text


def replaced(struct: type[ctypes.Structure], annotations: dict[str, object]) -> list[object]:
    """Return all structures, one of them with other fields."""
    members = {"__annotations__": annotations, "__module__": structs.__name__}
    other = structs.c_struct(type(struct)(struct.__name__, (ctypes.Structure,), members))
    structs.STRUCTS.pop()  # where `c_struct` adds it
    return [other if one is struct else one for one in structs.STRUCTS]


@pytest.mark.parametrize("struct", structs.STRUCTS, ids=lambda struct: struct.__name__)
def test_a_moved_field_is_refused(
    struct: type[ctypes.Structure], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes stay the same, so that offsets alone tell."""
    path, fields = libraries()[0], list(struct.__annotations__.items())
    for first in range(len(fields) - 1):
        swapped = [*fields[:first], fields[first + 1], fields[first], *fields[first + 2 :]]
        monkeypatch.setattr(structs, "STRUCTS", replaced(struct, dict(swapped)))
        with pytest.raises(OSError, match=rf"{structs.c_name(struct)}\.{fields[first][0]}"):
            open_library(path)
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("name", "annotation"),
    [
        ("logit_softcap", structs.Int32),
        ("softcap", structs.Float),
        ("logit_softcap", structs.Double),
    ],
)
def test_a_field_of_another_type_or_name_is_refused(
    name: str, annotation: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    struct = structs.AttentionStruct
    fields = {
        **{key: kind for key, kind in struct.__annotations__.items() if key != "logit_softcap"},
        name: annotation,
    }
    monkeypatch.setattr(structs, "STRUCTS", replaced(struct, fields))
    with pytest.raises(OSError, match=r"Attention"):
        open_library(libraries()[0])


@pytest.mark.parametrize("enum", constants.ENUMS, ids=lambda enum: enum.__name__)
def test_another_number_of_an_enumerator_is_refused(
    enum: type[IntEnum], monkeypatch: pytest.MonkeyPatch
) -> None:
    members = {member.name: member.value for member in enum}
    last = max(members, key=members.__getitem__)
    changed = IntEnum(enum.__name__, members | {last: members[last] + 1})
    others = tuple(changed if one is enum else one for one in constants.ENUMS)
    monkeypatch.setattr(structs, "ENUMS", others)
    with pytest.raises(OSError, match=rf"{enum.__name__}\.{last}"):
        open_library(libraries()[0])


@pytest.mark.parametrize("name", ["PANEL", "RATIO_RANGES"])
def test_another_constant_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, name, (0.5,) if name == "RATIO_RANGES" else 64)
    with pytest.raises(OSError, match=rf"constant\.{name}"):
        open_library(libraries()[0])


def test_another_signature_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = structs.DECLARATIONS.replace("int64_t count, float divisor", "float divisor")
    monkeypatch.setattr(structs, "DECLARATIONS", changed)
    with pytest.raises(OSError, match=r"void scale_logits\(float \*logits, float divisor"):
        open_library(libraries()[0])


def test_an_unknown_field_can_not_be_set() -> None:
    with pytest.raises(AttributeError):
        structs.LinearStruct(kind=1)


def test_activations_and_routing_scores_of_blocks_have_codes() -> None:
    assert [one.name for one in constants.ActivationCode] == sorted(
        Activation.__members__, key=lambda name: constants.ActivationCode[name]
    )
    assert set(constants.ScoringCode.__members__) == set(Scoring.__members__)


def test_the_generated_sources_match_pythons_descriptions(tmp_path: Path) -> None:
    assert generate.outdated() == [], "run python -m medusa_core.system.native.build, and commit"
    assert generate.outdated(tmp_path) == ["abi.h", "abi.c"]
    generate.write(tmp_path)
    assert generate.outdated(tmp_path) == []
    (tmp_path / "abi.h").write_text("edited", encoding="utf-8")
    assert generate.outdated(tmp_path) == ["abi.h"]


def test_a_library_can_be_named_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    path = libraries()[-1]
    monkeypatch.setenv("MEDUSA_NATIVE", str(path))
    library = native_library.__wrapped__()
    assert library is not None
    assert library._name == str(path)


def test_an_unknown_library_name_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MEDUSA_NATIVE", "avx512_bf16")
    assert native_library.__wrapped__() is None
    assert "avx512_bf16 names no compiled step; there are: " in caplog.text
    assert libraries()[0].stem in caplog.text


X86 = {f"avx512_{name}": True for name in ("f", "bw", "cd", "dq", "vl")} | {
    "avx2": True,
    "fma3": True,
}


@pytest.mark.parametrize(
    ("capabilities", "names"),
    [
        ({"avx2": True}, []),
        ({"avx2": True, "fma3": True}, ["avx2"]),
        ({"avx2": True, "fma3": True, "avx_vnni": True}, ["avx2vnni", "avx2"]),
        (X86, ["avx512", "avx2"]),
        (X86 | {"avx512_vl": False}, ["avx2"]),
        (X86 | {"avx512_vnni": True}, ["avx512vnni", "avx512", "avx2"]),
        (
            X86 | {"avx512_vnni": True, "avx512_bf16": True},
            ["avx512bf16", "avx512vnni", "avx512", "avx2"],
        ),
    ],
)
def test_a_cpu_gets_the_libraries_that_it_can_run(
    capabilities: dict[str, bool], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "system_name", lambda: "linux-x86_64")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert native.instruction_sets() == names
    monkeypatch.setattr(native, "system_name", lambda: "macos-aarch64")
    assert native.instruction_sets() == ["neon"]


@pytest.mark.parametrize(
    ("reported", "names"),
    [
        ("processor\t: 0\nFeatures\t: fp asimd asimddp\n", ["neondot", "neon"]),
        ("processor\t: 0\nFeatures\t: fp asimd\n", ["neon"]),
        ("", ["neon"]),
        (None, ["neon"]),
    ],
)
def test_an_arm_cpu_uses_byte_products_if_it_has_them(
    reported: str | None, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reported is not None:
        (tmp_path / "cpuinfo").write_text(reported)
    monkeypatch.setattr(native, "system_name", lambda: "linux-aarch64")
    monkeypatch.setattr(native, "_CPU_FILE", tmp_path / "cpuinfo")
    assert native.instruction_sets() == names


class Multiplier:
    """Fake library whose product takes a time by its own clock."""

    now = 0.0

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def linear(self, *_: object) -> None:
        Multiplier.now += self._seconds


def test_of_two_libraries_the_clearly_faster_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native.time, "perf_counter", lambda: Multiplier.now)
    slow, less, fast = (cast("ctypes.CDLL", Multiplier(s)) for s in (4e-3, 3.8e-3, 1e-3))
    assert native.fastest([]) is None
    assert native.fastest([slow]) is slow
    assert native.fastest([slow, fast]) is fast
    assert native.fastest([fast, slow]) is fast
    assert native.fastest([slow, less]) is slow  # such a difference may be chance


@each_library
def test_every_library_can_be_compared(path: Path) -> None:
    first, again = open_library(path), open_library(path)
    assert native.fastest([first, again]) in (first, again)


def test_systems_have_library_names() -> None:
    assert system_name("linux", "x86_64") == "linux-x86_64"
    assert system_name("win32", "AMD64") == "windows-x86_64"
    assert system_name("darwin", "arm64") == "macos-aarch64"


def test_the_hash_distinguishes_sources(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;")
    first = hash_of_build(tmp_path)
    (tmp_path / "a.c").write_text("int b;")
    assert first != hash_of_build(tmp_path)
    assert len(first) == len(hashlib.sha256().hexdigest())


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("ZIG_VERSION", "0.15.2"),
        ("FLAGS", building.FLAGS[1:]),
        ("_BUILDS", (("linux", "linux-x86_64", "x86_64-linux-gnu.2.17", {"avx2": "x86_64_v2"}),)),
    ],
)
def test_the_hash_distinguishes_builds(
    name: str, other: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hash_of_build()
    monkeypatch.setattr(building, name, other)
    assert hash_of_build() != first
