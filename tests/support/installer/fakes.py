"""A machine on which nothing is installed and nothing takes time."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from installer.errors import CommandError
from installer.layout import Layout
from installer.model_file import FILE, FILE_BYTES, FOLDER
from installer.process import Output
from installer.requirements import name_of

PYPROJECT = """
[project]
dependencies = ["torch>=2.11", "PySide6-Essentials>=6.11"]
[project.optional-dependencies]
server = ["starlette>=1.10"]
test = ["pytest>=9"]
"""
CONSTRAINTS = "torch==2.13.0\nuv==0.13.8\n"


class FakeMachine:
    """Does to a directory what venv, pip and uv would do to it.

    Attributes:
        layout: the checkout.
        commands: everything that was run, as one string each.
        nvidia_smi: its output; None if there is no driver.
        index_reachable: whether uv finds the build of torch that was asked for.
        pip_torch: version of torch that pip finds.
        before_install: called before each package installation; may raise.
        loads_torch: whether torch can be imported once it is there.
        tool_statuses: exit status of each tool of `installer test`, by its name.
        lrelease_status: exit status of the compiler of translations.
        app_status: exit status of whatever runs on the terminal.
        pull_status: exit status of `medusa pull`.
    """

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        root.mkdir(exist_ok=True)
        self.layout.pyproject.write_text(PYPROJECT, encoding="utf-8")
        self.layout.constraints.parent.mkdir(exist_ok=True)
        self.layout.constraints.write_text(CONSTRAINTS, encoding="utf-8")
        self.commands: list[str] = []
        self.nvidia_smi: str | None = None
        self.index_reachable = True
        self.pip_torch = "2.13.0"
        self.before_install: Callable[[Sequence[str]], None] = lambda command: None
        self.loads_torch = True
        self.tool_statuses: dict[str, int] = {}
        self.lrelease_status = 0
        self.app_status = 0
        self.pull_status = 0

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Answer for nvidia-smi, venv, uv's dry run, lrelease, tools and short Python programs."""
        self.commands.append(" ".join(command))
        if (tool := Path(command[0]).name) in self.tool_statuses:
            return Output(self.tool_statuses[tool], f"{tool} is done\n")
        if command[0] == "nvidia-smi":
            status = None if self.nvidia_smi is None else 0
            return Output(status, self.nvidia_smi or "")
        if "-qm" in command:
            Path(command[-1]).write_text("compiled", encoding="utf-8")
            return Output(self.lrelease_status, "no such text")
        if "venv" in command:
            self.make_environment()
        elif "--dry-run" in command and not self.index_reachable:
            return Output(2, "error: Failed to fetch\n  cause: dns error\n  cause: no such name\n")
        elif "import torch" in command and not self.loads_torch:
            return Output(1, "ImportError: libgomp.so.1")
        return Output(0, "")

    def stream(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Install packages: leave behind the metadata that pip or uv would."""
        self.commands.append(" ".join(command))
        self.before_install(command)
        if "install" not in command:
            return
        backend = next((a.partition("=")[2] for a in command if "--torch-backend" in a), "")
        for requirement in command[command.index("install") + 1 :]:
            if requirement.startswith(("-", "/")):
                continue
            name = name_of(requirement)
            if name == "torch" and "torch==2.13.0" not in requirement:
                continue  # there already, in the pinned version
            version = f"2.13.0+{backend}" if backend else self.pip_torch
            self.put_package(name, version if name == "torch" else "1.0")

    def echo(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> Output:
        """Run a tool of `installer test`."""
        self.commands.append(" ".join(command))
        tool = Path(command[0]).name
        return Output(self.tool_statuses.get(tool, 0), f"some words\n=== {tool} is done ===\n")

    def attach(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> int:
        """Run the application, or `medusa pull`."""
        self.commands.append(" ".join(command))
        return self.pull_status if "pull" in command else self.app_status

    def make_environment(self) -> None:
        """What `python -m venv` leaves behind."""
        self.layout.python.parent.mkdir(parents=True, exist_ok=True)
        self.layout.python.touch()
        (self.layout.venv / "pyvenv.cfg").write_text("version = 3.11.7\n", encoding="utf-8")

    def put_package(self, name: str, version: str) -> None:
        """Leave a distribution's metadata in the environment, in place of an earlier one."""
        stem = name.lower().replace("-", "_")
        for earlier in self.site_packages.glob(f"{stem}-*.dist-info/RECORD"):
            earlier.unlink()
            earlier.parent.rmdir()
        record = self.site_packages / f"{stem}-{version}.dist-info" / "RECORD"
        record.parent.mkdir(parents=True, exist_ok=True)
        record.touch()

    @property
    def site_packages(self) -> Path:
        """Where packages go."""
        return self.layout.venv / "lib" / "python3.11" / "site-packages"

    def ran(self, words: str) -> list[str]:
        """The commands that contain `words`."""
        return [command for command in self.commands if words in command]


def offline(command: Sequence[str]) -> None:
    """Fail as pip does where no name can be resolved."""
    raise CommandError(command, 1, ["NewConnectionError: name resolution failed"])


def put_model(models: Path, size: int = FILE_BYTES) -> None:
    """A file of its name."""
    (models / FOLDER).mkdir(parents=True, exist_ok=True)
    with (models / FOLDER / FILE).open("wb") as file:
        file.truncate(size)
