"""A package, a checkout and a machine on which uv does its work in no time."""

import base64
import hashlib
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from installer.bootstrap.first_model import FILE, FILE_BYTES, FOLDER
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.records import Settings
from installer.layout import Layout
from installer.package.wheel import carried_files
from installer.process import CancelledError, Output
from installer.torch_choice import TorchBuild, TorchChoice

ROOT = Path(__file__).resolve().parents[3]
PINS = "medusa_core/_resources/constraints.txt"
NO_CARD = TorchChoice(TorchBuild.CPU, "no NVIDIA GPU found")


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    requires: Sequence[str] = (),
    scripts: str = "",
) -> Path:
    """A wheel of a few texts."""
    stem = f"{name.replace('-', '_')}-{version}"
    about = f"{stem}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {one}" for one in requires]
    metadata += ["Provides-Extra: server"] if name == "medusa-chat" else []
    texts = {
        **files,
        f"{about}/METADATA": "\n".join(metadata) + "\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if scripts:
        texts[f"{about}/entry_points.txt"] = scripts
    record = "".join(f"{one},{_digest(text)},{len(text)}\n" for one, text in texts.items())
    record += f"{about}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for one, text in {**texts, f"{about}/RECORD": record}.items():
            wheel.writestr(one, text)
    return path


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def make_program(folder: Path, version: str = "1.0") -> Program:
    """A package's folder with a small wheel, and a uv that is only a name."""
    for name, source in carried_files(ROOT).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (folder / "uv").touch()
    make_wheel(folder, "medusa-chat", version, {PINS: "torch==2.13.0\n"})
    return Program(folder)


def wanted_of(program: Program, **changes: object) -> Wanted:
    """The package's version for a machine without a card."""
    fields: dict[str, object] = {
        "version": program.version(),
        "wheel": program.wheel(),
        "uv": program.uv(),
        "choice": NO_CARD,
        "settings": Settings(),
    }
    return Wanted(**{**fields, **changes})  # type: ignore[arg-type]


class FakeMachine:
    """Fake that changes a folder as uv would.

    Attributes:
        layout: a checkout.
        commands: everything that was run, as one string each.
        env: variables of the last command.
        torch: what each way to ask for torch gives: the start of the requirement or option, and
            lines of packages; the first that fits.
        starts: whether the installed program can be imported.
        before: called before each command; may raise.
        says: uv's last words where it fails; empty for success.
        is_damaging: packages come out of the cache with other bytes than they name.
        pull_status: exit status of `medusa pull`.
        statuses: exit status of other programs, by name; else 0, and None for nvidia-smi.
        nvidia_smi: its output; None if there is no driver.
    """

    def __init__(self, root: Path) -> None:
        self.layout = make_checkout(root)
        self.commands: list[str] = []
        self.env: Mapping[str, str] = {}
        self.torch: list[tuple[str, list[str]]] = [("--torch-backend=cpu", ["torch==2.13.0+cpu"])]
        self.starts = True
        self.before: Callable[[str], None] = lambda command: None
        self.says = ""
        self.is_damaging = False
        self.pull_status = 0
        self.statuses: dict[str, int] = {}
        self.nvidia_smi: str | None = None

    def at(self, folder: Path, held: int) -> "FakeMachine":
        """Stand in for SystemCommands."""
        return self

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Answer for a dry run, a start of the program, the cache, nvidia-smi and tools."""
        line = self._note(command, env)
        if command[0] == str(self.layout.python) and not self.layout.python.exists():
            return Output(None, "No such file or directory")
        if command[0] == "nvidia-smi":
            return Output(None if self.nvidia_smi is None else 0, self.nvidia_smi or "")
        if "-qm" in command:
            Path(command[-1]).write_text("compiled", encoding="utf-8")
        if (tool := Path(command[0]).name) in self.statuses:
            return Output(self.statuses[tool], f"{tool} is done\n")
        if "--dry-run" in command:
            packages = self._torch_for(command)
            if packages is None:
                return Output(1, "error: No solution found when resolving dependencies")
            return Output(0, "".join(f" + {one}\n" for one in packages))
        if "clean" in command:
            self.is_damaging = False
        elif "-c" in command and not self.starts:
            return Output(1, "ImportError: libgomp.so.1")
        return Output(0, line)

    def follow(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None,
        on_line: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> Output:
        """Make an environment, install into one, pull the model, or run a tool."""
        self._note(command, env)
        if is_cancelled():
            raise CancelledError
        if self.says:
            return Output(2, self.says)
        on_line("Resolved")
        if "venv" in command:
            self._make_environment(Path(command[-1]))
        elif "pull" in command:
            return Output(self.pull_status, "error: There is no network.")
        elif "install" in command:
            self._install(Path(command[command.index("--python") + 1]), command)
        tool = Path(command[0]).name
        return Output(self.statuses.get(tool, 0), f"some words\n=== {tool} is done ===\n")

    def attach(self, command: Sequence[str]) -> int:
        """Run the application."""
        self._note(command)
        return self.statuses.get("app", 0)

    def ran(self, words: str) -> list[str]:
        """The commands that contain `words`."""
        return [command for command in self.commands if words in command]

    def _note(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
        self.env = env or {}
        line = " ".join(command)
        self.commands.append(line)
        self.before(line)
        return line

    def _torch_for(self, command: Sequence[str]) -> list[str] | None:
        """The packages that a way to ask for torch gives."""
        for asked, packages in self.torch:
            if any(word.startswith(asked) for word in command):
                return packages
        return None

    def _make_environment(self, folder: Path) -> None:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()
        (folder / "pyvenv.cfg").touch()

    def _install(self, python: Path, command: Sequence[str]) -> None:
        libraries = python.parents[1] / "lib" / "python3.11" / "site-packages"
        if any(word.startswith("torch==") for word in command):
            for one in self._torch_for(command) or []:
                self._put(libraries, *one.split("=="))
        if any(word.startswith("medusa-chat") for word in command):
            self._put(libraries, "medusa-chat", "1.0")
        if "-r" in command:
            names = ("pip", "PySide6_Essentials", *(["pytest"] if "test" in command else []))
            for name in names:
                self._put(libraries, name, "1.0")

    def _put(self, libraries: Path, name: str, version: str) -> None:
        stem = name.replace("-", "_")
        for earlier in libraries.glob(f"{stem}-*.dist-info"):
            shutil.rmtree(earlier)
        about = libraries / f"{stem}-{version}.dist-info"
        about.mkdir(parents=True)
        (libraries / f"{stem}.py").write_text("damage" if self.is_damaging else "", "utf-8")
        record = f"{stem}.py,{_digest('')},0\n{about.name}/RECORD,,\n"
        (about / "RECORD").write_text(record, encoding="utf-8")


def make_checkout(root: Path) -> Layout:
    """A checkout whose pyproject.toml and pins are nearly empty."""
    layout = Layout(root)
    layout.constraints.parent.mkdir(parents=True)
    layout.pyproject.write_text("[project]\n", encoding="utf-8")
    layout.constraints.write_text("torch==2.13.0\n", encoding="utf-8")
    return layout


def put_model(models: Path, size: int = FILE_BYTES) -> None:
    """A file of the first model's name."""
    (models / FOLDER).mkdir(parents=True, exist_ok=True)
    with (models / FOLDER / FILE).open("wb") as file:
        file.truncate(size)


class Listener:
    """A reporter that remembers, and answers every question the same way.

    Attributes:
        steps: what was told.
        questions: what was asked.
        agrees: the answer.
        is_over: whether the user has had enough.
        ends_at: the line after which the user has; empty for none.
    """

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.lines: list[str] = []
        self.questions: list[str] = []
        self.agrees = False
        self.is_over = False
        self.ends_at = ""

    def step(self, text: str) -> None:
        self.steps.append(text)

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.is_over |= text == self.ends_at

    def amount(self, done: int, total: int) -> None:
        pass

    def confirm(self, question: str) -> bool:
        self.questions.append(question)
        return self.agrees

    def is_cancelled(self) -> bool:
        return self.is_over


def installed(data: ProgramData, version: str, chat: str = "exit 0", run: str = "exit 0") -> None:
    """An environment whose programs are scripts of a shell."""
    place = data.environment(version)
    (place.root / "bin").mkdir(parents=True)
    place.python.touch()
    for name, script in (("medusa-chat", chat), ("medusa", run)):
        program = place.program(name)
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    place.stamp.write_text(
        f'{{"version": "{version}", "torch": "2.13.0+cpu", "packages": []}}', encoding="utf-8"
    )
