"""What the engine asks of a card goes through one module."""

import inspect
import re
from pathlib import Path

from torch.cuda._utils import _cuda_load_module, _CudaKernel

import medusa_core

ROOT = Path(medusa_core.__file__).parent


def test_only_the_cuda_module_queries_torch_cuda() -> None:
    asks = re.compile(r"torch\.cuda\b|from torch import cuda")
    users = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.rglob("*.py"))
        if asks.search(path.read_text(encoding="utf-8"))
    ]
    assert users == ["system/cuda.py"]


def test_the_private_loader_of_torch_has_the_interface_that_kernels_use() -> None:
    loader = list(inspect.signature(_cuda_load_module).parameters)
    kernel = list(inspect.signature(_CudaKernel.__call__).parameters)
    assert loader == ["ptx", "kernel_names"]
    assert kernel == ["self", "grid", "block", "args", "shared_mem", "stream"]
