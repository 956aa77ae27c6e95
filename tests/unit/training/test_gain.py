"""What heads bring, of what was measured at the end of their training."""

from pathlib import Path

from medusa_core.system.jobs.heads_gain import (
    HeadsGain,
    read_gain,
    write_gain,
)
from medusa_core.training.heads_eval import HeadsEval


def test_a_gain_is_the_speed_up_over_plain_decoding_averaged_over_categories(
    tmp_path: Path,
) -> None:
    found = HeadsEval(
        top=(),
        tau={"4": 1.5},
        tokens_per_s={"none": 40.0, "heads": 38.8},
        by_category={"a": {"tau": 1.1, "x_plain": 1.0}, "b": {"tau": 1.26, "x_plain": 0.9}},
    )
    assert found.gain == HeadsGain(1.18, 0.97)
    assert not found.gain.pays
    write_gain(tmp_path, found.gain)
    assert read_gain(tmp_path) == found.gain
