"""A package and a machine on which uv does its work in no time."""

import base64
import hashlib
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from installer.bootstrap.carried import carried_files
from installer.bootstrap.commands import CancelledError
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.settings import Settings
from installer.process import Output
from installer.torch_choice import TorchBuild, TorchChoice

ROOT = Path(__file__).resolve().parents[3]
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
    (folder / "constraints.txt").write_text("torch==2.13.0\n", encoding="utf-8")
    (folder / "uv").touch()
    make_wheel(folder, "medusa-chat", version, {"medusa_core/__init__.py": ""})
    return Program(folder)


def wanted_of(program: Program, **changes: object) -> Wanted:
    """The package's version for a machine without a card."""
    fields: dict[str, object] = {
        "version": program.version(),
        "wheel": program.wheel(),
        "constraints": program.constraints,
        "uv": program.uv(),
        "choice": NO_CARD,
        "settings": Settings(),
    }
    return Wanted(**{**fields, **changes})  # type: ignore[arg-type]


class FakeMachine:
    """Does to a folder what uv would do to it.

    Attributes:
        commands: everything that was run, as one string each.
        torch: what each way to ask for torch gives: the start of the requirement or option, and
            lines of packages; the first that fits.
        starts: whether the installed program can be imported.
        before: called before each command; may raise.
        says: uv's last words where it fails; empty for success.
        is_damaging: packages come out of the cache with other bytes than they name.
        pulls: whether the program can fetch its first model.
    """

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.torch: list[tuple[str, list[str]]] = [("--torch-backend=cpu", ["torch==2.13.0+cpu"])]
        self.starts = True
        self.before: Callable[[str], None] = lambda command: None
        self.says = ""
        self.is_damaging = False
        self.pulls = True

    def at(self, folder: Path, held: int) -> "FakeMachine":
        """Stand in for SystemCommands."""
        return self

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Answer for a dry run, a start of the program, and a look into the cache."""
        line = self._note(command)
        if "--dry-run" in command:
            for asked, packages in self.torch:
                if any(word.startswith(asked) for word in command):
                    return Output(0, "".join(f" + {one}\n" for one in packages))
            return Output(1, "error: No solution found when resolving dependencies")
        if "clean" in command:
            self.is_damaging = False
        elif "-c" in command and not self.starts:
            return Output(1, "ImportError: libgomp.so.1")
        return Output(0, line)

    def follow(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        heard: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> Output:
        """Make an environment, or install into one."""
        self._note(command)
        if is_cancelled():
            raise CancelledError
        if self.says:
            return Output(2, self.says)
        heard("Resolved")
        if "venv" in command:
            self._make_environment(Path(command[-1]))
        elif "pull" in command:
            return Output(0 if self.pulls else 1, "error: There is no network.")
        else:
            self._install(Path(command[command.index("--python") + 1]), command)
        return Output(0, "")

    def ran(self, words: str) -> list[str]:
        """The commands that contain `words`."""
        return [command for command in self.commands if words in command]

    def _note(self, command: Sequence[str]) -> str:
        line = " ".join(command)
        self.commands.append(line)
        self.before(line)
        return line

    def _make_environment(self, folder: Path) -> None:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()

    def _install(self, python: Path, command: Sequence[str]) -> None:
        libraries = python.parents[1] / "lib" / "python3.11" / "site-packages"
        for requirement in command:
            if requirement.startswith(("torch==", "medusa-chat")):
                name = "torch" if requirement.startswith("torch") else "medusa-chat"
                self._put(libraries, name)

    def _put(self, libraries: Path, name: str) -> None:
        stem = name.replace("-", "_")
        about = libraries / f"{stem}-1.0.dist-info"
        about.mkdir(parents=True, exist_ok=True)
        (libraries / f"{stem}.py").write_text("damage" if self.is_damaging else "", "utf-8")
        record = f"{stem}.py,{_digest('')},0\n{about.name}/RECORD,,\n"
        (about / "RECORD").write_text(record, encoding="utf-8")


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
    place.stamp.write_text(f'{{"version": "{version}", "torch": "2.13.0+cpu"}}', encoding="utf-8")
