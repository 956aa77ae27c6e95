"""An engine without a thread, for a card that the calling thread imagines."""

from medusa_core.engine.executor import Executor
from medusa_core.messages import Command, Event


class EngineOnCard:
    """Engine without a thread, since a card is faked per thread."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.executor = Executor(self.events.append, lambda _: False)

    def ask(self, *commands: Command) -> list[Event]:
        """Return the events of commands once all of them are done."""
        first = len(self.events)
        for command in commands:
            self.executor.handle(command)
        while self.executor.has_work:
            self.executor.work()
        return self.events[first:]
