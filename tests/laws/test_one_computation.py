"""Attention, RoPE, norms and MLPs are computed in `runtime/backends` alone.

An import contract keeps other rooms from the project's functions; this keeps them from torch's.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import medusa_core

ROOT = Path(medusa_core.__file__).parent
OPERATIONS = {
    *("scaled_dot_product_attention", "multi_head_attention_forward", "baddbmm", "einsum"),
    *("rms_norm", "layer_norm", "rsqrt", "rsqrt_", "view_as_complex", "polar"),
    *("silu", "gelu", "conv1d"),
}
# Residual layers of Medusa and Hydra heads: a linear layer and SiLU, no part of a transformer.
RESIDUAL = {
    *("heads/medusa.py", "heads/hydra.py", "training/heads.py", "training/hydra_trainee.py"),
}
# The kernels that fuse gate and up are compared with torch before they are used.
SELF_TEST = "models/quant/card_linear.py"


def operations(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in OPERATIONS:
            yield node.attr


def test_only_the_backends_compute_operations_of_blocks() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in ROOT.rglob("*.py")
        if path.parent != ROOT / "runtime" / "backends"
        for name in operations(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == {f"{path}: silu" for path in {*RESIDUAL, SELF_TEST}}
