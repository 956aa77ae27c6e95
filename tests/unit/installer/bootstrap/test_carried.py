"""What a system package carries is enough for the bootstrap, on a Python without anything."""

import shutil
import subprocess
import sys
from pathlib import Path

from installer.package.wheel import carried_files

ROOT = Path(__file__).resolve().parents[4]
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, {program!r})
from installer import bootstrap
for one in pkgutil.iter_modules(bootstrap.__path__):
    if not one.name.startswith("window"):  # tkinter is a package of its own on some systems
        importlib.import_module("installer.bootstrap." + one.name)
"""


def make_program(folder: Path) -> Path:
    for name, source in carried_files(ROOT).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return folder


def test_carried_files_import_nothing_else(tmp_path: Path) -> None:
    program = make_program(tmp_path / "program")
    command = [sys.executable, "-I", "-S", "-c", IMPORT_ALL.format(program=str(program))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_carried_module_of_the_installer_is_needed(tmp_path: Path) -> None:
    shared = [name for name in carried_files(ROOT) if name.count("/") == 1]
    bootstrap = ROOT / "installer" / "bootstrap"
    text = "\n".join(path.read_text(encoding="utf-8") for path in bootstrap.glob("*.py"))
    text += (ROOT / "installer" / "lock.py").read_text(encoding="utf-8")
    names = {Path(name).stem for name in shared} - {"__init__"}
    assert not {name for name in names if f"from installer.{name} import" not in text}
