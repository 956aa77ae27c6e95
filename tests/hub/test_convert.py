"""Pickles become safetensors, bit by bit the same; what isn't only tensors is refused unopened."""

import io
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from medusa_core.errors import Cancelled, CheckpointError, ConversionError, DiskFullError
from medusa_core.hub import convert_process
from medusa_core.hub.convert import ConversionLimits, Converted, convert
from medusa_core.hub.convert_source import find_source
from medusa_core.hub.pickles import inspect_pickle
from medusa_core.hub.pickles_archive import ArchiveLimits
from medusa_core.models.checkpoint import Checkpoint

HIDDEN, VOCABULARY = 16, 40
LIMITS = ConversionLimits(time_s=120, floor_bytes=0)


class Runs:
    """Unpickles by calling whatever it was given."""

    def __init__(self, call: Callable[..., object], *args: object) -> None:
        self._reduced = call, args

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self._reduced


def head_tensors() -> dict[str, Tensor]:
    return {
        name: tensor
        for head in range(3)
        for name, tensor in (
            (f"{head}.0.linear.weight", torch.randn(HIDDEN, HIDDEN).half()),
            (f"{head}.0.linear.bias", torch.randn(HIDDEN).half()),
            (f"{head}.1.weight", torch.randn(VOCABULARY, HIDDEN).half()),
        )
    }


def run(path: Path, output: Path | None = None) -> Converted:
    return convert(find_source(path, output), is_consented=True, limits=LIMITS)


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        as_bytes = (t.contiguous().reshape(-1).view(torch.uint8) for t in (found[name], tensor))
        assert torch.equal(*as_bytes), name


def leftovers(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def write_archive(path: Path, data_pkl: bytes, **members: bytes) -> Path:
    """A zip as torch writes it, around any pickle."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", data_pkl)
        archive.writestr("archive/byteorder", b"little")
        archive.writestr("archive/version", b"3\n")
        for name, data in members.items():
            archive.writestr(f"archive/data/{name.removeprefix('_')}", data)
    return path


def storage_pickle(num_elements: int, size: tuple[int, ...], stride: tuple[int, ...]) -> bytes:
    """The pickle of {"w": a float32 tensor} in storage 0."""

    def integer(value: int) -> bytes:
        data = pickle.encode_long(value)
        return b"\x8a" + bytes([len(data)]) + data

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def sizes(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(integer, values)) + b"t"

    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu")
    storage += integer(num_elements) + b"tQ"
    hooks = b"\x89ccollections\nOrderedDict\n)R"
    args = b"(" + storage + integer(0) + sizes(size) + sizes(stride) + hooks + b"t"
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n" + args + b"R"
    return b"\x80\x02}" + text("w") + rebuild + b"s."


# What is written is what was read.


def test_heads_are_converted_bit_by_bit_and_can_be_read(tmp_path: Path) -> None:
    heads = head_tensors()
    torch.save(heads, tmp_path / "medusa_lm_head.pt")
    config = {"base_model_name_or_path": "lmsys/vicuna-7b-v1.3", "medusa_num_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = run(tmp_path)
    assert [path.name for path in done.files] == ["medusa_lm_head.safetensors"]
    assert_same(load_file(done.files[0]), heads)
    assert json.loads((tmp_path / "config.json").read_text()) == config
    assert leftovers(tmp_path) == {
        "medusa_lm_head.pt",
        "medusa_lm_head.safetensors",
        "config.json",
    }


def test_heads_in_another_folder_get_a_configuration_that_names_their_model(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    parameters = {name: torch.nn.Parameter(t) for name, t in head_tensors().items()}
    torch.save(OrderedDict(parameters), source / "medusa_lm_head.pt")
    (source / "config.json").write_text('{"base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}')
    run(source / "medusa_lm_head.pt", output)
    config = json.loads((output / "config.json").read_text())
    assert config["base_model_name_or_path"] == "lmsys/vicuna-7b-v1.3"
    assert config["medusa_num_heads"] == 3
    assert leftovers(source) == {"medusa_lm_head.pt", "config.json"}


def shards(folder: Path) -> dict[str, Tensor]:
    """Two shards with every dtype, views, shared and tied tensors, scalars and empties."""
    folder.mkdir(exist_ok=True)
    tied = torch.randn(VOCABULARY, HIDDEN)
    whole = torch.randn(6, HIDDEN)
    first = {
        "model.embed_tokens.weight": tied,
        "lm_head.weight": tied,
        "transposed": torch.randn(4, 8).t(),
        "every other": torch.arange(10.0)[::2],
        "expanded": torch.ones(1).expand(3, 2),
        "upper": whole[:4],
        "overlapping": whole[2:],
    }
    second = {
        "bf16": torch.randn(5, 3).bfloat16(),
        "f64": torch.randn(2).double(),
        "bool": torch.tensor([True, False, True]),
        "i64": torch.tensor(-(2**62)),
        "empty": torch.empty(0, HIDDEN),
        "nan": torch.tensor([float("nan"), float("inf"), -0.0]).half(),
    }
    weight_map = {}
    for number, tensors in enumerate((first, second), start=1):
        name = f"pytorch_model-{number:05}-of-00002.bin"
        torch.save(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return first | second


def test_shards_are_converted_one_by_one_with_their_index(tmp_path: Path) -> None:
    wanted = shards(tmp_path / "in")
    (tmp_path / "in" / "config.json").write_text("{}")
    (tmp_path / "in" / "tokenizer.json").write_text("{}")
    seen: list[tuple[int, int]] = []
    source = find_source(tmp_path / "in", tmp_path / "out")
    done = convert(
        source,
        is_consented=True,
        limits=LIMITS,
        on_progress=lambda written, total: seen.append((written, total)),
    )
    assert [path.name for path in done.files] == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ]
    assert leftovers(tmp_path / "out") == {path.name for path in done.files} | {
        "config.json",
        "tokenizer.json",
    }
    found: dict[str, Tensor] = {}
    for path in done.files[:2]:
        found |= load_file(path)
    assert_same(found, wanted)
    checkpoint = Checkpoint.open_model(tmp_path / "out")
    assert checkpoint.names == wanted.keys()
    index = json.loads(done.files[2].read_text())
    total = sum(tensor.nbytes for tensor in wanted.values())
    assert index["metadata"]["total_size"] == total == seen[-1][0] == seen[-1][1]
    assert [written for written, _ in seen] == sorted(written for written, _ in seen)


def test_a_single_file_of_weights_becomes_model_safetensors(tmp_path: Path) -> None:
    tensors = {"model.norm.weight": torch.ones(HIDDEN)}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    done = run(tmp_path)
    assert [path.name for path in done.files] == ["model.safetensors"]
    assert_same(load_file(done.files[0]), tensors)


# What is refused, before anything is opened.


def commands() -> list[tuple[str, bytes]]:
    """Pickles that run a command, by the instruction that reaches it."""
    nested = {"0.0.linear.weight": {"deeper": [(1, Runs(os.system, "true"))]}}
    stack = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x8c\x04true\x85R."
    memo = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x8c\x01xh\x00h\x01\x93\x8c\x04true\x85R."
    return [
        ("reduce", pickle.dumps({"a": Runs(os.system, "true")}, protocol=2)),
        ("nested", pickle.dumps(nested, protocol=2)),
        ("stack global", stack),
        ("stack global by memo", memo),
        ("inst", b"(S'true'\nios\nsystem\n."),
        ("plain global", b"cos\nsystem\n(S'true'\ntR."),
    ]


@pytest.mark.parametrize(("how", "data"), commands(), ids=[how for how, _ in commands()])
def test_a_pickle_that_runs_a_command_is_refused_by_its_name(
    tmp_path: Path, how: str, data: bytes
) -> None:
    path = write_archive(tmp_path / "medusa_lm_head.pt", data)
    with pytest.raises(ConversionError, match=r"would call (os|posix|nt)\.system") as caught:
        run(path)
    assert caught.value.data["name"] in ("os.system", "posix.system", "nt.system")
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


@pytest.mark.parametrize(
    "name", ["builtins eval", "torch.serialization os.system", "torch load", "torch._utils _x"]
)
def test_any_name_that_is_not_on_the_list_is_refused(tmp_path: Path, name: str) -> None:
    module, attribute = name.split()
    data = b"\x80\x02c%s\n%s\n)R." % (module.encode(), attribute.encode())
    path = write_archive(tmp_path / "x.bin", data)
    with pytest.raises(
        ConversionError, match=f"would call {module}.{attribute}".replace(".", r"\.")
    ):
        inspect_pickle(path)


def test_instructions_that_torch_does_not_write_are_refused(tmp_path: Path) -> None:
    new_object = b"\x80\x02ccollections\nOrderedDict\n)\x81."
    with pytest.raises(ConversionError, match="NEWOBJ"):
        inspect_pickle(write_archive(tmp_path / "new.bin", new_object))
    extension = b"\x80\x02\x82\x01)R."
    with pytest.raises(ConversionError, match="EXT1"):
        inspect_pickle(write_archive(tmp_path / "extension.bin", extension))


def test_what_follows_the_end_of_a_pickle_is_refused(tmp_path: Path) -> None:
    two = b"\x80\x02}." + pickle.dumps(Runs(os.system, "true"), protocol=2)
    with pytest.raises(ConversionError, match="follows the end"):
        inspect_pickle(write_archive(tmp_path / "two.bin", two))


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # a text of 2 GiB
        b"\x80\x04\x8d" + b"\xff" * 8 + b"abc.",  # one of 2^64 bytes
        b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",  # a number of 2 GiB
        b"\x80\x02}",  # no end
        b"\x80\x02\xfe.",  # no instruction
        b"",
    ],
)
def test_a_pickle_that_promises_more_than_it_has_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ConversionError):
        inspect_pickle(write_archive(tmp_path / "huge.bin", data))


def test_a_tensor_much_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    wide = 1 << 20
    bombs = {
        "repeated": (4, (wide, wide), (0, 0)),
        "beyond": (4, (wide,), (1,)),
        "declared": (1 << 40, (1 << 40,), (1,)),
    }
    for name, (count, size, stride) in bombs.items():
        data = storage_pickle(count, size, stride)
        path = write_archive(tmp_path / f"{name}.bin", data, _0=b"\0" * 16)
        inspect_pickle(path)  # nothing is wrong with what it calls
        with pytest.raises(ConversionError):
            run(path, tmp_path / "out")
        assert leftovers(tmp_path / "out") == set()
    # And the same pickle with a size that is true is taken.
    path = write_archive(tmp_path / "ok.bin", storage_pickle(4, (2, 2), (2, 1)), _0=b"\0" * 16)
    run(path, tmp_path / "out")
    assert_same(load_file(tmp_path / "out" / "model.safetensors"), {"w": torch.zeros(2, 2)})


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", storage_pickle(1 << 22, (1 << 22,), (1,)))
        archive.writestr("archive/data/0", b"\0" * (1 << 24))
    assert path.stat().st_size < 1 << 16
    with pytest.raises(ConversionError, match="compressed"):
        inspect_pickle(path)


def test_members_that_promise_more_than_the_file_are_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.bin", b"\x80\x02}.", _0=b"\0" * 64)
    data = path.read_bytes()
    # In the table of contents, both sizes of the member data/0.
    entry = data.rindex(b"archive/data/0") - 46
    huge = struct.pack("<LL", 1 << 30, 1 << 30)
    path.write_bytes(data[: entry + 20] + huge + data[entry + 28 :])
    with pytest.raises(ConversionError, match="promises"):
        inspect_pickle(path)


def test_archives_that_two_readers_could_read_differently_are_refused(tmp_path: Path) -> None:
    good = write_archive(tmp_path / "x.bin", b"\x80\x02}.").read_bytes()
    inspect_pickle(tmp_path / "x.bin")
    foreign = {
        "something after the end": good + b"x",
        "something before the beginning": b"PK\x03\x04" + good,
        "two archives": good + good,
    }
    for what, data in foreign.items():
        path = tmp_path / f"{what}.bin"
        path.write_bytes(data)
        with pytest.raises(ConversionError):
            inspect_pickle(path)
    with pytest.raises(ConversionError, match="something follows it"):
        inspect_pickle(tmp_path / "something after the end.bin")
    with zipfile.ZipFile(tmp_path / "y.bin", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        archive.writestr("archive/DATA.pkl", b"\x80\x02}.")
    with pytest.raises(ConversionError, match="one name"):
        inspect_pickle(tmp_path / "y.bin")
    with zipfile.ZipFile(tmp_path / "z.bin", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        archive.writestr("archive/code/model.py", b"print()")
    with pytest.raises(ConversionError, match=r"code/model\.py"):
        inspect_pickle(tmp_path / "z.bin")


def test_archives_beyond_the_limits_are_refused(tmp_path: Path) -> None:
    members = {f"_{number}": b"" for number in range(20)}
    path = write_archive(tmp_path / "x.bin", b"\x80\x02}.", **members)
    with pytest.raises(ConversionError, match="23 members"):
        inspect_pickle(path, ArchiveLimits(most_members=10))
    with pytest.raises(ConversionError, match="4 bytes"):
        inspect_pickle(path, ArchiveLimits(most_pickle_bytes=3))


def test_a_truncated_archive_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(head_tensors(), buffer)
    data = buffer.getvalue()
    path = tmp_path / "medusa_lm_head.pt"
    for length in [0, 1, 4, 30, *range(100, len(data), len(data) // 40), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ConversionError):
            inspect_pickle(path)


def test_a_flipped_byte_never_escapes_as_another_error(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"w": torch.ones(3)}, buffer)
    data = bytearray(buffer.getvalue())
    path = tmp_path / "x.bin"
    refused = 0
    for place in range(len(data)):
        data[place] ^= 0x5A
        path.write_bytes(data)
        try:
            inspect_pickle(path)
        except ConversionError:
            refused += 1
        data[place] ^= 0x5A
    assert refused > len(data) // 4


def test_the_format_of_old_torch_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "medusa_lm_head.pt"
    torch.save(head_tensors(), path, _use_new_zipfile_serialization=False)
    with pytest.raises(ConversionError, match=r"1\.6") as caught:
        run(path)
    assert "weights_only=True" in caught.value.hint


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:", "pointer"),
        (b"<!doctype html>", "web page"),
        (b"", "empty"),
        (b"\0" * 64, "unknown kind"),
    ],
)
def test_what_is_no_pickle_is_named(tmp_path: Path, data: bytes, what: str) -> None:
    (tmp_path / "medusa_lm_head.pt").write_bytes(data)
    with pytest.raises(ConversionError, match=what):
        run(tmp_path)


def test_a_checkpoint_with_more_than_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "state": head_tensors()}, tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ConversionError, match="no tensor"):
        run(tmp_path)
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


# What can happen on the way.


def test_nothing_is_converted_without_consent(tmp_path: Path) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ConversionError, match="can run code"):
        convert(find_source(tmp_path), is_consented=False, limits=LIMITS)
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


def test_a_killed_converter_leaves_nothing(tmp_path: Path) -> None:
    shards(tmp_path / "in")
    before = leftovers(tmp_path)

    def kill(written: int, total: int) -> None:
        if written:
            # The worker waits for a word now: something is written, and something is not.
            (worker,) = psutil.Process().children()
            assert any("out" in name for name in leftovers(tmp_path) - before)
            worker.kill()

    with pytest.raises(ConversionError, match="unexpectedly") as caught:
        convert(find_source(tmp_path / "in"), is_consented=True, limits=LIMITS, on_progress=kill)
    assert caught.value.data["code"] != 0
    assert leftovers(tmp_path) == before
    run(tmp_path / "in")


def test_a_cancelled_conversion_leaves_nothing(tmp_path: Path) -> None:
    shards(tmp_path / "in")
    before = leftovers(tmp_path)
    progress: list[int] = []
    with pytest.raises(Cancelled):
        convert(
            find_source(tmp_path / "in"),
            is_consented=True,
            limits=LIMITS,
            on_progress=lambda written, total: progress.append(written),
            is_cancelled=lambda: bool(progress and progress[-1]),
        )
    assert leftovers(tmp_path) == before
    assert not psutil.Process().children()


def test_a_silent_converter_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    # Importing torch alone takes longer.
    with pytest.raises(ConversionError, match="done nothing"):
        convert(
            find_source(tmp_path),
            is_consented=True,
            limits=ConversionLimits(time_s=0.05, floor_bytes=0),
        )
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


def test_the_worker_ends_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    (tmp_path / "staging").mkdir()
    job = convert_process.Job(
        (str(tmp_path / "medusa_lm_head.pt"),),
        str(tmp_path / "staging"),
        False,
        (),
        "",
        1 << 32,
        1 << 30,
    )
    with (tmp_path / "said").open("wb") as said:
        process = convert_process._start(said)
    with process:
        convert_process._send(process, convert_process.asdict(job))
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 3


def test_memory_of_the_worker_is_bounded(tmp_path: Path) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("only Linux bounds a process's address space")
    # Transposed, it must be copied to be written; there is no room for the copy.
    torch.save({"w": torch.zeros(8192, 4096).t()}, tmp_path / "pytorch_model.bin")
    tight = ConversionLimits(time_s=120, floor_bytes=0, memory_bytes=-2 * (128 << 20) + (32 << 20))
    with pytest.raises(ConversionError):
        convert(find_source(tmp_path), is_consented=True, limits=tight)
    assert leftovers(tmp_path) == {"pytorch_model.bin"}
    run(tmp_path)


def test_leftovers_of_a_dead_conversion_are_cleared_and_those_of_living_ones_stay(
    tmp_path: Path,
) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    dead = tmp_path / ".conversion-999999999-abc.partial"
    living = tmp_path / f".conversion-{os.getpid()}-abc.partial"
    for folder in (dead, living):
        (folder / "out").mkdir(parents=True)
    run(tmp_path)
    assert not dead.exists()
    assert living.exists()


def test_what_exists_is_never_written_over(tmp_path: Path) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    run(tmp_path)
    before = (tmp_path / "medusa_lm_head.safetensors").stat().st_mtime_ns
    with pytest.raises(ConversionError, match="exists already"):
        run(tmp_path)
    assert (tmp_path / "medusa_lm_head.safetensors").stat().st_mtime_ns == before


def test_a_full_disk_is_seen_before_anything_is_written(tmp_path: Path) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    limits = ConversionLimits(floor_bytes=1 << 60)
    with pytest.raises(DiskFullError):
        convert(find_source(tmp_path), is_consented=True, limits=limits)
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


def test_shards_that_are_missing_or_elsewhere_are_named(tmp_path: Path) -> None:
    shards(tmp_path)
    (tmp_path / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(CheckpointError, match="1 of 2"):
        find_source(tmp_path)
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text('{"weight_map": {"a": "../../x.bin"}}')
    with pytest.raises(CheckpointError, match="outside"):
        find_source(tmp_path)


def test_an_index_that_names_more_than_the_shards_hold_is_refused(tmp_path: Path) -> None:
    shards(tmp_path)
    index = tmp_path / "pytorch_model.bin.index.json"
    raw = json.loads(index.read_text())
    raw["weight_map"]["absent"] = "pytorch_model-00001-of-00002.bin"
    index.write_text(json.dumps(raw))
    before = leftovers(tmp_path)
    with pytest.raises(ConversionError, match="absent"):
        run(tmp_path)
    assert leftovers(tmp_path) == before


def test_a_folder_without_pickles_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="No pickled") as caught:
        find_source(tmp_path)
    assert "medusa_lm_head.pt" in caught.value.hint
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ConversionError, match="already"):
        find_source(tmp_path)
