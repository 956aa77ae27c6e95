"""Damaged checkpoints, one seed each; run as a process of its own, whose memory is limited.

    python -m tests.support.models.mutations FOLDER FIRST LAST

prints a JSON object: how often loading was refused, by error, and what went wrong otherwise.
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
from typing import Any

from medusa_core.engine.direct import generate
from medusa_core.errors import MedusaError
from medusa_core.loading.load import load_target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role
from tests.support.models.tiny import trusted_template

MOST_BYTES = 1 << 30  # a tiny checkpoint has a hundred thousand
MOST_S = 10.0
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 7, 10**6, 2**24, 2**31, 2**63, 10**30, 0.5, -0.0, 1e-30,
    1e300, float("nan"), float("inf"), "", "8", "\x00", [], [1], [[]], {}, {"a": 1}, [None], ["x"],
)  # fmt: skip


def mutate_json(path: Path, rng: random.Random) -> None:
    """Change, drop or double a value somewhere in a JSON file."""
    raw = json.loads(path.read_text())
    places = list(_places(raw))
    container, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del container[key]
        case 1:
            container[key] = [container[key]] * 2
        case 2:
            for _ in range(2000):
                container[key] = [container[key]]
        case _:
            container[key] = rng.choice(ODD_VALUES)
    try:
        path.write_text(json.dumps(raw))
    except RecursionError:
        path.write_text("[" * 5000)


def _places(value: Any) -> Any:
    if isinstance(value, dict):
        for key in list(value):
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(min(len(value), 20)):
            yield value, index
            yield from _places(value[index])


def mutate_header(path: Path, rng: random.Random) -> None:
    """Corrupt a safetensors header: dtypes, shapes, offsets or names."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    name = rng.choice([name for name in header if name != "__metadata__"])
    entry = header[name]
    odd = rng.choice((0, -1, 1, 3, 2**31, 2**40, 2**62, 10**25, "x", None))
    match rng.randrange(8):
        case 0:
            entry["dtype"] = rng.choice(("F64", "F16", "I64", "I8", "BOOL", "F8_E4M3", "X", 3))
        case 1:
            entry["shape"][rng.randrange(len(entry["shape"]))] = odd
        case 2:
            entry["data_offsets"][rng.randrange(2)] = odd
        case 3:
            entry["data_offsets"] = rng.choice(list(header.values()))["data_offsets"]
        case 4:
            header[rng.choice(("", "model.norm", "..", name + "x"))] = header.pop(name)
        case 5:
            del header[name]
        case 6:
            entry["shape"] = rng.choice(([], [0], list(reversed(entry["shape"])), [1] * 40))
        case _:
            header["extra.weight"] = dict(entry)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def mutate_bytes(path: Path, rng: random.Random) -> None:
    """Corrupt the file itself: its length field, some bytes, or its end."""
    data = bytearray(path.read_bytes())
    match rng.randrange(4):
        case 0:
            data[:8] = rng.choice((0, 1, 2**20, 2**40, 2**63, 2**64 - 1)).to_bytes(8, "little")
        case 1:
            for _ in range(rng.randrange(1, 20)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        case 2:
            del data[rng.randrange(len(data)) :]
        case _:
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(min(400, len(data)))] = rng.randrange(256)
    path.write_bytes(bytes(data))


def damage(folder: Path, rng: random.Random) -> str:
    """Damage one file of a checkpoint; returns what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    ways: list[Callable[[Path, random.Random], None]] = [mutate_bytes]
    if path.suffix == ".json":
        ways += [mutate_json] * 4
    if path.suffix == ".safetensors":
        ways += [mutate_header] * 3
    way = rng.choice(ways)
    way(path, rng)
    return f"{way.__name__} on {path.relative_to(folder)}"


def try_out(folder: Path) -> str:
    """Load it and answer something; returns the name of the error, or `works`."""
    try:
        target = load_target(folder / "model", folder / "heads", LoadOptions("float32", "cpu"))
        drafter = "medusa" if target.heads is not None else "none"
        settings = GenerateSettings(drafter=drafter, max_new_tokens=4)
        generate(target, [ChatMessage(Role.USER, "hi")], settings)
    except MedusaError as error:
        if not error.message:
            raise
        return type(error).__name__
    return "works"


def main(source: Path, first: int, last: int) -> dict[str, Any]:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    folder = source.parent / "damaged"
    for seed in range(first, last):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        done = damage(folder, random.Random(seed))
        started = time.process_time()
        try:
            outcomes[try_out(folder)] += 1
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is to be told
            wrong.append(f"seed {seed}: {done}: {type(error).__name__}: {error}"[:400])
        if time.process_time() - started > MOST_S:
            wrong.append(f"seed {seed}: {done}: took {time.process_time() - started:.0f} s")
    return {"outcomes": outcomes, "wrong": wrong}


if __name__ == "__main__":
    with trusted_template():  # damaged ones are rendered as those of strangers are
        print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
