"""A server that follows a script."""

from dataclasses import dataclass

from app.server.server_switch import ServerEvents


@dataclass
class ScriptedServer:
    """Notes what is wanted of it."""

    port: int
    events: ServerEvents
    is_running: bool = False

    def start(self) -> None:
        self.is_running = True

    def stop(self) -> None:
        self.is_running = False


class Servers(list[ScriptedServer]):
    """Makes servers, and has them."""

    def make(self, port: int, events: ServerEvents) -> ScriptedServer:
        self.append(ScriptedServer(port, events))
        return self[-1]
