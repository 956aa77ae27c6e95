"""The files of a checkout that a system package carries for the bootstrap."""

from pathlib import Path

# Modules of the installer that the bootstrap imports; they need the standard library only.
_SHARED = (
    "__init__.py",
    "console.py",
    "errors.py",
    "gpu.py",
    "lock.py",
    "process.py",
    "torch_choice.py",
)


def carried_files(root: Path) -> dict[str, Path]:
    """Return the files of PROGRAM, without the wheel and uv.

    Args:
        root: the checkout.

    Returns:
        Path of each file below PROGRAM, with slashes, and the file that it is a copy of.
    """
    installer = root / "installer"
    bootstrap = installer / "bootstrap"
    carried = {"launch.py": bootstrap / "launch.py", "constraints.txt": _constraints(root)}
    carried |= {f"installer/{name}": installer / name for name in _SHARED}
    for path in sorted(bootstrap.glob("*.py")):
        if path.name != "launch.py":
            carried[f"installer/bootstrap/{path.name}"] = path
    return carried


def _constraints(root: Path) -> Path:
    return root / "installer" / "constraints.txt"
