"""Heads that were made to do harm, one seed each; run as a process whose memory is limited.

    python -m tests.support.models.hostile_heads FOLDER FIRST LAST

prints a JSON object: of every kind, how often heads were refused, by error; what was harmed without
being refused; and what went wrong otherwise.
"""

import json
import random
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.engine.direct import generate
from medusa_core.errors import MedusaError
from medusa_core.heads.kind import read_shape
from medusa_core.heads.reader import read_head_set
from medusa_core.heads.writer import write_heads as write_format
from medusa_core.loading.load import load_target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role
from medusa_core.speculation.drafters.lineup import serving_drafters
from tests.support.models.assistant_files import AssistantSpec, write_assistant
from tests.support.models.block_files import DFLASH, DFLASH2, DSPARK, REDUCED, write_block
from tests.support.models.eagle_files import EagleSpec, write_eagle
from tests.support.models.hydra_files import random_hydra, write_hydra
from tests.support.models.mtp_files import write_mimo
from tests.support.models.mutations import ODD_VALUES
from tests.support.models.peer_files import write_guessing_peer, write_peer
from tests.support.models.streams_files import StreamsSpec, write_streams
from tests.support.models.tiny import (
    TinySpec,
    random_heads,
    random_rooted_heads,
    trusted_template,
    write_heads,
    write_rooted_heads,
    write_tiny,
)

MOST_BYTES = 1 << 29  # a tiny head has twenty thousand
MOST_S = 2.0
SPEC = TinySpec(num_layers=2, seed=3)
Tensors = dict[str, Tensor]


class Written(NamedTuple):
    """A target and heads that it takes.

    Attributes:
        model: Folder of the target.
        heads: Folder of the heads; None where they lie in the target's files.
    """

    model: Path
    heads: Path | None


def _beside(write: Callable[[Path], Path]) -> Callable[[Path], Written]:
    return lambda folder: Written(write_tiny(folder / "model", SPEC), write(folder / "heads"))


def _merged(folder: Path) -> Written:
    model = write_tiny(folder / "model", SPEC)
    heads = load_file(write_heads(folder / "x", random_heads(SPEC)) / "medusa_lm_head.safetensors")
    path = model / "model.safetensors"
    save_file(load_file(path) | {f"medusa_head.{n}": t for n, t in heads.items()}, path)
    return Written(model, None)


def _classic(is_shared: bool) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        write_heads(folder, random_heads(SPEC, is_shared=is_shared))
        settings = {"medusa_num_heads": 3, "medusa_num_layers": 1, "base_model_name_or_path": "x"}
        (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        return folder

    return write


def _vllm(folder: Path) -> Path:
    heads, _ = read_head_set(
        write_heads(folder.with_name("source"), random_heads(SPEC)), torch.bfloat16
    )
    write_format(heads, "vllm", folder, "tiny")
    return folder


def _qwen(folder: Path) -> Written:
    write_guessing_peer("qwen 3.5", folder / "model")
    return Written(folder / "model", None)


def _gemma4(folder: Path) -> Written:
    write_peer("gemma 4 E2B", folder / "model")
    return Written(folder / "model", write_assistant(folder / "heads", AssistantSpec(clusters=32)))


WRITERS: dict[str, Callable[[Path], Written]] = {
    "medusa v0.1": _beside(_classic(is_shared=False)),
    "medusa vllm": _beside(_vllm),
    "medusa v2": _beside(_classic(is_shared=True)),
    "medusa rooted": _beside(lambda folder: write_rooted_heads(folder, random_rooted_heads(SPEC))),
    "medusa merged": _merged,
    "hydra": _beside(lambda folder: write_hydra(folder, random_hydra(SPEC))),
    "eagle 1": _beside(lambda folder: write_eagle(folder, EagleSpec("eagle1"))),
    "eagle 3": _beside(lambda folder: write_eagle(folder, EagleSpec("eagle3"))),
    "eagle sglang": _beside(lambda folder: write_eagle(folder, EagleSpec("sglang", taps=(1, 2)))),
    "eagle speculators": _beside(lambda folder: write_eagle(folder, EagleSpec("speculators"))),
    "eagle parallel": _beside(
        lambda folder: write_eagle(folder, EagleSpec("speculators", depth=2, mask=3))
    ),
    "gemma4-assistant": _gemma4,
    "dflash": _beside(lambda folder: write_block(folder, DFLASH)),
    "dflash 2": _beside(lambda folder: write_block(folder, DFLASH2)),
    "dspark": _beside(lambda folder: write_block(folder, DSPARK)),
    "dspark speculators": _beside(lambda folder: write_block(folder, REDUCED)),
    "mtp MiMo": lambda folder: Written(write_mimo(folder / "model"), None),
    "mtp Qwen": _qwen,
    "streams": _beside(lambda folder: write_streams(folder, StreamsSpec(SPEC, num_layers=1))),
}
HUGE: tuple[Any, ...] = (0, -1, 2, 10**6, 2**31, 2**63, 10**30, "four", None, [], {}, [[1]], 1e300)
LAYOUTS: tuple[str, ...] = ("[]", "[1, 2]", '"a"', "null", "{", "", "[" * 100_000, '{"a":' * 9_000)


def _own(names: list[str], written: Written) -> list[str]:
    """Tensors of the heads alone."""
    if written.heads is not None:
        return names
    return [
        name for name in names if name.startswith(("medusa_head.", "model.mtp_layers.", "mtp."))
    ]


def _tensor(tensor: Tensor, rng: random.Random) -> Tensor | None:
    """Return a tensor that no head may have; None for a missing one."""
    whole = tensor.float() if tensor.dtype is not torch.int64 else tensor
    match rng.randrange(9):
        case 0:
            return None
        case 1:
            return torch.full_like(whole, float("nan")) if whole.is_floating_point() else -whole - 9
        case 2:
            return (
                torch.full_like(whole, float("inf")) if whole.is_floating_point() else whole << 40
            )
        case 3:
            return torch.cat([tensor, tensor])
        case 4:
            return torch.zeros((), dtype=tensor.dtype)
        case 5:
            return torch.zeros(0, dtype=tensor.dtype)
        case 6:
            return tensor.reshape([1] * 30 + list(tensor.shape))
        case 7:
            return tensor[:-1].contiguous()
        case _:
            return torch.zeros(tensor.shape, dtype=torch.complex64)


def harm_tensors(written: Written, folder: Path, rng: random.Random) -> str:
    """Replace a tensor by one that can't be."""
    path = next(folder.glob("*.safetensors"))
    tensors = load_file(path)
    name = rng.choice(_own(sorted(tensors), written))
    harmed = _tensor(tensors.pop(name), rng)
    if harmed is not None:
        tensors[name] = harmed
    save_file(tensors, path)
    return f"{name}: {'none' if harmed is None else (harmed.dtype, list(harmed.shape)[-4:])}"


def harm_settings(written: Written, folder: Path, rng: random.Random) -> str:
    """Replace a value of the configuration at any depth."""
    path = folder / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    places = [(settings, key) for key in settings]
    places += [(v, key) for v in settings.values() if isinstance(v, dict) for key in v]
    container, key = rng.choice(places)
    value = rng.choice((*HUGE, *ODD_VALUES))
    container[key] = value
    path.write_text(json.dumps(settings), encoding="utf-8")
    return f"{key} = {value!r}"


def harm_layout(written: Written, folder: Path, rng: random.Random) -> str:
    """Replace the configuration by what is none."""
    text = rng.choice(LAYOUTS)
    (folder / "config.json").write_text(text, encoding="utf-8")
    return f"config.json: {text[:20]}"


def harm_file(written: Written, folder: Path, rng: random.Random) -> str:
    """Truncate the weights, or declare them longer than they are."""
    path = next(folder.glob("*.safetensors"))
    data = path.read_bytes()
    size = rng.choice((0, 1, 7, 8, 60, len(data) // 2, len(data) - 1))
    if rng.randrange(3) == 0:
        data = rng.choice((2**20, 2**40, 2**63)).to_bytes(8, "little") + data[8:]
        size = len(data)
    path.write_bytes(data[:size])
    return f"{size} bytes of {path.name}"


HARM = (harm_tensors, harm_tensors, harm_settings, harm_settings, harm_layout, harm_file)


_TRIED = (
    *("none", "medusa", "hydra", "eagle", "mtp", "streams"),
    *("dflash", "dspark", "jetspec", "gemma4-assistant"),
)


def try_out(written: Written) -> str:
    """Load them and draft; the name of the error, or `works` where the text is the target's."""
    try:
        read_shape(written.heads or written.model)
        target = load_target(written.model, written.heads, LoadOptions("float64", "cpu"))
        output = [ChatMessage(Role.USER, "hi")]
        texts = [
            generate(target, output, GenerateSettings(spec.name, max_new_tokens=4)).text
            for spec in serving_drafters(target)
            if spec.name in _TRIED
        ]
    except MedusaError as error:
        if not error.message or not error.hint:
            raise
        return type(error).__name__
    if any(text != texts[0] for text in texts):
        raise ValueError("another text than without drafts")
    return "works"


class Outcome(NamedTuple):
    """Outcome of some seeds: refusals by error, faults that loaded, and failures."""

    refused: Counter[str]
    worked: list[str]
    wrong: list[str]


def main(root: Path, first: int, last: int) -> dict[str, Any]:
    whole = {kind: write(root / kind.replace(" ", "-")) for kind, write in WRITERS.items()}
    assert all(try_out(written) == "works" for written in whole.values())
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))
    return {kind: _try_seeds(w, root, first, last)._asdict() for kind, w in whole.items()}


def _try_seeds(whole: Written, root: Path, first: int, last: int) -> Outcome:
    outcome = Outcome(Counter(), [], [])
    for seed in range(first, last):
        written = _copied(whole, root / "harmed")
        way = HARM[seed % len(HARM)]
        done = way(written, written.heads or written.model, random.Random(seed))
        reported = f"seed {seed}: {way.__name__}: {done}"
        started = time.process_time()
        try:
            found = try_out(written)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is to be told
            outcome.wrong.append(f"{reported}: {type(error).__name__}: {error}"[:400])
            continue
        if time.process_time() - started > MOST_S:
            outcome.wrong.append(f"{reported}: {time.process_time() - started:.1f} s")
        if found == "works":
            outcome.worked.append(reported)
        else:
            outcome.refused[found] += 1
    return outcome


def _copied(whole: Written, folder: Path) -> Written:
    shutil.rmtree(folder, ignore_errors=True)
    model = folder / "model"
    shutil.copytree(whole.model, model)
    if whole.heads is None:
        return Written(model, None)
    shutil.copytree(whole.heads, folder / "heads")
    return Written(model, folder / "heads")


if __name__ == "__main__":
    torch.set_num_threads(1)  # small matrices
    with trusted_template():
        print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
