"""Fetches what llama.cpp tests itself with: `python -m tests.tools.llama_cpp_files`.

The source package of llama-cpp-python carries chat templates of published models, vocabularies with
texts and their tokens, and the tests of llama-server. They lie beside the real models of the tests;
nothing is copied into this repository.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.tools import real_models

_PACKAGE = "llama-cpp-python==0.3.36"
MODELS = "models"
SERVER_TESTS = "tools/server/tests"


def folder(of: str = MODELS) -> Path:
    """Return the path of a folder of llama.cpp's sources."""
    name = _PACKAGE.replace("==", "-")
    return real_models.folder() / (name if of == MODELS else f"{name}-{of.replace('/', '-')}")


def fetch(of: str = MODELS) -> Path:
    """Fetch the files of a folder of llama.cpp's sources unless they are here.

    Args:
        of: The folder.

    Raises:
        CalledProcessError: pip failed, and has said why.
    """
    final = folder(of)
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent) as scratch:
        part = Path(scratch)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", scratch, _PACKAGE]
        subprocess.run(command, check=True, stdout=sys.stderr)
        (archive,) = part.glob("*.tar.gz")
        made = part / "made"
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                _, _, name = member.name.partition(f"/vendor/llama.cpp/{of}/")
                source = tar.extractfile(member) if name else None
                if source is not None:
                    to = made / name
                    to.parent.mkdir(parents=True, exist_ok=True)
                    to.write_bytes(source.read())
        made.rename(final)
    return final


if __name__ == "__main__":
    print(fetch())
    print(fetch(SERVER_TESTS))
