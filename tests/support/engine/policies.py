"""A machine that placements are planned for."""

from medusa_core.loading.memory.budget import GIB
from medusa_core.loading.policy.machine_rates import MachineRates

MACHINE = MachineRates(
    device_bytes=8 * GIB,
    memory_bytes=32 * GIB,
    disk_bytes=400 * GIB,
    to_device=12e9,
    from_device=12e9,
    from_disk=2e9,
    read_s=1e-4,
    to_disk=1e9,
    copied=6e9,
    num_cores=8,
    cache_on_device=3e11,
    cache_of_prompts=3e12,
    cache_in_memory=2e10,
    visit_s=1e-4,
    layer_s=((1, 5e-4), (64, 9e-4), (512, 4e-3)),
    head_s=((1, 1e-3), (512, 3e-3)),
)
