"""What tests of placements ask for by name."""

from dataclasses import replace

import pytest

from medusa_core.memory.budget import GIB, Budget
from medusa_core.memory.policy import question
from medusa_core.memory.policy.here import PolicyRequest
from medusa_core.memory.policy.machine import MachineRates
from medusa_core.memory.tiers import Below
from tests.support.engine.policies import MACHINE


@pytest.fixture
def known_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates of this machine that nobody has to measure."""

    def machine_for(
        request: PolicyRequest, budget: Budget, below: Below, _: object
    ) -> MachineRates:
        device = budget.total_bytes - budget.other_bytes - budget.runtime_bytes
        return replace(
            MACHINE, device_bytes=device, memory_bytes=0, disk_bytes=GIB * below.has_disk
        )

    monkeypatch.setattr(question, "machine_for", machine_for)
