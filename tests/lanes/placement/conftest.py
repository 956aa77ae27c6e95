"""What tests of placements ask for by name."""

from dataclasses import replace

import pytest

from medusa_core.loading.measure import machine
from medusa_core.loading.memory.budget import GIB, Budget
from medusa_core.loading.memory.placement import OffloadRoom
from medusa_core.loading.policy.machine_rates import MachineRates
from medusa_core.loading.policy.request import PolicyRequest
from tests.support.engine.policies import MACHINE


@pytest.fixture
def known_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set fixed machine rates instead of measuring them."""

    def measure_machine(
        request: PolicyRequest, budget: Budget, room: OffloadRoom, _: object
    ) -> MachineRates:
        device = budget.total_bytes - budget.other_bytes - budget.runtime_bytes
        return replace(
            MACHINE, device_bytes=device, memory_bytes=0, disk_bytes=GIB * (room.disk is not None)
        )

    monkeypatch.setattr(machine, "measure_machine", measure_machine)
