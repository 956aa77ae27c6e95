"""docs/models.md names the families that there are."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from medusa_core.models.architecture import arch_registry, gguf_archs
from medusa_core.models.checkpoints import gguf_config
from medusa_core.models.config import parse_config
from medusa_core.system.resources import resources_dir
from tests.support.models.peers import CONFIGS, RENAMED

ROOT = resources_dir().parent
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
NAME = re.compile(r"`([^`]+)`")
HEADER = "| family | GGUF |"


class Row(NamedTuple):
    """Row of the table for one family."""

    family: str
    formats: str


def lines_below(header: str) -> Iterator[list[str]]:
    """The cells of the table below a header."""
    _, _, below = PAGE.partition(header + "\n")
    for line in below.splitlines()[1:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


ROWS = {NAME.findall(cells[0])[0]: Row(*cells) for cells in lines_below(HEADER)}


def test_the_table_has_a_row_for_each_family() -> None:
    assert len(ROWS) == len(list(lines_below(HEADER)))
    assert set(ROWS) == set(arch_registry().names)


def test_the_table_names_each_architecture_of_gguf_files() -> None:
    named = {name for row in ROWS.values() for name in NAME.findall(row.formats)}
    assert named == set(gguf_archs())
    architectures = [spec.gguf for spec in arch_registry().specs if spec.gguf.name]
    assert len(named) == sum(1 + len(one.aliases) for one in architectures)  # none of two families
    for name, family in gguf_archs().items():
        assert name in NAME.findall(ROWS[family.name].formats)


def test_the_table_lists_refused_gguf_architectures() -> None:
    refused = [cells[0] for cells in lines_below("| what | why |")]
    named = {name for what in refused if what.startswith("GGUF") for name in NAME.findall(what)}
    assert named == set(gguf_config._INSTEAD)
    assert not named & set(gguf_archs())


def test_every_family_of_the_table_is_computed_by_the_engine() -> None:
    configs = {name: make() for name, make in CONFIGS.items()}
    for family in ROWS:
        of_family = [config for config in configs.values() if config.model_type == family]
        for config in of_family or [configs[RENAMED[family]]]:
            assert parse_config(json.loads(config.to_json_string()), {}).has_native_family, family


def test_the_comparison_counts_the_families() -> None:
    text = (ROOT / "docs" / "compared.md").read_text(encoding="utf-8")
    assert f"| Architectures | [{len(ROWS)}](models.md), others" in text
