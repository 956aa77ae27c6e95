"""The installer for Windows, for one user; PyTorch is downloaded at the first start."""

import os
import re
import shutil
from pathlib import Path, PurePosixPath

from installer.__main__ import SUITABLE
from installer.console import say
from installer.errors import CommandError, SetupError
from installer.layout import program_version
from installer.package.format import Format, Job
from installer.package.icons import ICO_SIZES, draw_banner, draw_pictures, ico_file
from installer.package.wheel import fill_program
from installer.process import run_checked

SCRIPT = Path("installer") / "windows" / "medusa-chat.nsi"
SYSTEM = "windows-x86_64"
# The Python that uv fetches: the newest that the program runs with.
PYTHON = SUITABLE[0]
LAST_LINES = 12


def build_windows(job: Job) -> Path:
    """Build `MedusaChat-VERSION-windows-x86_64.exe`; from the same files the same bytes.

    Raises:
        SetupError: a tool is missing and can't be fetched, or fails.
    """
    if shutil.which("makensis") is None:
        raise SetupError(
            "NSIS, which builds installers for Windows, isn't here.",
            "winget install NSIS.NSIS" if os.name == "nt" else "sudo apt-get install nsis",
        )
    program, version = job.work / "program", program_version(job.layout)
    fill_program(job, program, SYSTEM)
    icon = job.work / "medusa-chat.ico"
    icon.write_bytes(ico_file(draw_pictures(job, ICO_SIZES)))
    files = job.work / "files.nsh"
    files.write_text(install_commands(program), encoding="utf-8")
    built = job.out / f"MedusaChat-{version}-{SYSTEM}.exe"
    defined = {
        "VERSION": version,
        "VERSION_NUMBERS": version_numbers(version),
        "PYTHON": PYTHON,
        "FILES": str(files),
        "ICON": str(icon),
        "BANNER": str(draw_banner(job)),
        "OUTPUT": str(built),
    }
    _run_makensis(job, defined)
    say(f"{built} ({built.stat().st_size / 1e6:.1f} MB)")
    return built


def version_numbers(version: str) -> str:
    """Return a version as Windows requires it: four numbers."""
    numbers = re.findall(r"\d+", version)[:3]
    return ".".join([*numbers, *["0"] * (4 - len(numbers))])


def install_commands(program: Path) -> str:
    """Return NSIS's commands that put a folder into $INSTDIR, in a fixed order."""
    paths = sorted(one.relative_to(program).as_posix() for one in program.rglob("*"))
    files = [PurePosixPath(path) for path in paths if (program / path).is_file()]
    lines, folder = ['SetOutPath "$INSTDIR"'], PurePosixPath()
    for file in sorted(files, key=lambda path: (str(path.parent), path.name)):
        if file.parent != folder:
            folder = file.parent
            lines.append(f'SetOutPath "$INSTDIR\\{str(folder).replace("/", chr(92))}"')
        source = str(program / file).replace("$", "$$")
        lines.append(f'File "{source}"')
    return "\n".join(lines) + "\n"


def _run_makensis(job: Job, defined: dict[str, str]) -> None:
    options = [f"-D{name}={value}" for name, value in defined.items()]
    script = str(job.layout.root / SCRIPT)
    try:
        run_checked(job.commands, ["makensis", "-NOCD", "-WX", "-V3", *options, script])
    except CommandError as error:
        said = "\n".join(error.output[-LAST_LINES:])
        raise SetupError(f"makensis failed. It said last:\n{said}") from error


SPEC = Format("windows", "an installer for Windows, x86-64", build_windows)
