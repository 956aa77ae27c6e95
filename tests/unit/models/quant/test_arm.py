"""The kernels for ARM, on an imitated processor: the same bits as here.

Needs qemu-user and the compiler of the extra `native`.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from medusa_core.models.quant.block_types import (
    BLOCK_TYPES,
    block_type,
)
from medusa_core.models.quant.native_linear import (
    NativeLinear,
    native_block_linear,
    native_int8_linear,
)
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.system.native.build import (
    ARM,
    FLAGS,
    SOURCES,
)

HARNESS = Path(__file__).with_name("arm_products.c")
QEMU = shutil.which("qemu-aarch64")
KINDS = ("int8", *sorted(BLOCK_TYPES))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(QEMU is None, reason="qemu-user isn't installed"),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The harness for every ARM library's processor."""
    pytest.importorskip("ziglang", reason="the extra native isn't installed")
    folder = tmp_path_factory.mktemp("arm")
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    flags = [flag for flag in FLAGS if flag != "-shared"]
    made = {}
    for name, cpu in ARM.items():
        made[name] = folder / name
        target = ["-target", "aarch64-linux-musl", f"-mcpu={cpu}", f"-I{SOURCES}"]
        command = [sys.executable, "-m", "ziglang", "cc", *flags, *target]
        subprocess.run([*command, "-o", str(made[name]), str(HARNESS), *sources], check=True)
    return made


def layer_of(kind: str) -> NativeLinear:
    if kind == "int8":
        weight = torch.randint(-127, 128, (64, 512), generator=torch.Generator().manual_seed(4))
        made = native_int8_linear(weight.to(torch.int8), torch.rand(64) / 100, None)
    else:
        made = native_block_linear(block_type(kind), random_blocks(kind, 48, 512, seed=3), None)
    assert made is not None
    return made


@pytest.mark.parametrize("rows", [1, 5, 13])
@pytest.mark.parametrize("kind", KINDS)
def test_products_on_arm_equal_those_of_this_machine(
    kind: str, rows: int, programs: dict[str, Path], tmp_path: Path
) -> None:
    layer = layer_of(kind)
    (part,) = layer.parts
    x = torch.randn(rows, part.inputs, generator=torch.Generator().manual_seed(rows))
    weight = part.weight.contiguous().view(torch.uint8)
    reported = torch.tensor([part.type, part.outputs, part.inputs, rows, weight.numel()])
    scale = torch.zeros(part.outputs) if part.scale is None else part.scale
    content = [reported.to(torch.int32), weight, scale.float(), x]
    file = tmp_path / "case"
    file.write_bytes(b"".join(tensor.numpy().tobytes() for tensor in content))
    wanted = layer(x).numpy().tobytes()
    for name, program in programs.items():
        ran = subprocess.run([str(QEMU), str(program), str(file)], capture_output=True, check=True)
        assert ran.stdout == wanted, name
