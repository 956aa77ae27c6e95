"""An engine without a thread, for a card that the calling thread imagines."""

from medusa_core.engine.executor import Executor
from medusa_core.messages import Command, Event


class EngineOnCard:
    """An engine without a thread: a card is faked by the thread that asks for it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.executor = Executor(self.events.append, lambda _: False)

    def ask(self, *commands: Command) -> list[Event]:
        """What commands bring, when all of them are done."""
        first = len(self.events)
        for command in commands:
            self.executor.handle(command)
        while self.executor.has_work:
            self.executor.work()
        return self.events[first:]
