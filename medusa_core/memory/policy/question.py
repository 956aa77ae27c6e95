"""What a policy is searched for, and in what: a model, its prompts, a machine and its budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from medusa_core.errors import PlanError
from medusa_core.memory.budget import Budget
from medusa_core.memory.policy.found import FoundPolicy
from medusa_core.memory.policy.here import PolicyRequest, Rates, machine_for, work_of
from medusa_core.memory.policy.machine import MachineRates
from medusa_core.memory.policy.rules import Rules
from medusa_core.memory.policy.search import expected, search
from medusa_core.memory.policy.work import BatchWork
from medusa_core.memory.tiers import Below
from medusa_core.messages import Policy, Tier


@dataclass(frozen=True)
class PolicyQuestion:
    """See the module; rates are measured when they are asked for first.

    Attributes:
        request: The model and its prompts.
        budget: What may be taken of the device.
        below: What lies below it.
        rules: What may be done.
        rates: What was measured before.
    """

    request: PolicyRequest
    budget: Budget
    below: Below
    rules: Rules
    rates: Rates

    @cached_property
    def work(self) -> BatchWork:
        """What is asked, in bytes and rows."""
        return work_of(self.request)

    @cached_property
    def machine(self) -> MachineRates:
        """What there is.

        Raises:
            TierError: The disk can't be written.
        """
        return machine_for(self.request, self.budget, self.below, self.rates)

    def best(self, missing_bytes: int = 0) -> FoundPolicy:
        """The best policy.

        Args:
            missing_bytes: By which the device is smaller than it seems.

        Raises:
            PlanError: None has room.
        """
        room = self.machine.device_bytes - missing_bytes
        found = search(self.work, self.machine.with_room(Tier.DEVICE, room), self.rules)
        if found is None:
            raise PlanError(
                f"The model has no room on any tier of {self.budget.name}.",
                "Give it more --memory-gib, or name a folder on a disk that is less full with "
                "--tier-disk.",
            )
        return self._as_asked(found)

    def _as_asked(self, found: FoundPolicy) -> FoundPolicy:
        """With the formats that aren't searched, as exact text is the default."""
        kinds = self.request.formats
        policy = replace(found.policy, cache_format=kinds.cache_format, attended=kinds.attended)
        return found._replace(policy=policy)

    def weights_first(self) -> PolicyQuestion:
        """The same where cache and activations stay on the device."""
        return replace(self._measured(), rules=replace(self.rules, cache_below=False))

    def for_one(self) -> PolicyQuestion:
        """The same for one prompt at a time."""
        return replace(self._measured(), request=replace(self.request, num_prompts=1))

    def _measured(self) -> PolicyQuestion:
        """The same, which believes what was measured for this one."""
        _ = self.machine
        return replace(self, rates=replace(self.rates, anew=()))

    def of(self, policy: Policy) -> FoundPolicy:
        """Somebody's policy, and what is expected of it."""
        return FoundPolicy(policy, expected(self.work, self.machine, policy))
