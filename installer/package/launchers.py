"""The programs for Windows, which find Python, or fetch it, and run the bootstrap with it."""

import re
from pathlib import Path

from installer.errors import CommandError, SetupError
from installer.package.format import Job
from installer.package.tools import tool
from installer.process import run_checked
from installer.version import program_version

SOURCES = Path("installer") / "windows" / "launcher"
FLAGS = (
    *("-target", "x86_64-windows-gnu", "-O2", "-s", "-std=c11", "-fno-sanitize=all"),
    *("-Wall", "-Wextra", "-Werror", "-DUNICODE", "-D_UNICODE"),
)
LIBRARIES = ("-lshlwapi", "-lshell32", "-lcomctl32", "-lgdi32", "-luser32", "-ladvapi32")
SHARED = ("launcher.c", "folders.c", "python.c")
WINDOW = ("-Wl,--subsystem,windows",)  # no terminal opens with it
# What is built of what, and with which flags.
PROGRAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "MedusaChat.exe": ((*SHARED, "fetch_window.c"), WINDOW),
    "medusa.exe": ((*SHARED, "fetch_terminal.c"), ("-DTERMINAL",)),
}
LAST_LINES = 12


def build_launchers(job: Job, icon: Path, python: str, folder: Path) -> Path:
    """Compile MedusaChat.exe and medusa.exe; from the same sources the same bytes.

    Args:
        job: what is built.
        icon: an ICO file.
        python: version of the Python that they fetch, such as 3.13.
        folder: where they go.

    Returns:
        path.exe, which the installer uses and doesn't leave behind; it lies in the work folder.

    Raises:
        SetupError: zig, which compiles them, is missing and can't be fetched, or fails.
    """
    zig, sources = tool(job, "python-zig", "ziglang"), job.layout.root / SOURCES
    resources, version = job.work / "launcher.res", program_version(job.layout)
    defined = {
        "VERSION_TEXT": f'"{version}"',
        "VERSION_NUMBERS": version_numbers(version).replace(".", ","),
        "ICON_FILE": f'"{icon.as_posix()}"',
    }
    defines = [word for name, value in defined.items() for word in ("/d", f"{name}={value}")]
    script = str(sources / "launcher.rc")
    _run(job, [str(zig), "rc", *defines, "/fo", str(resources), "--", script])
    path_tool = job.work / "path.exe"
    wanted = {folder / name: program for name, program in PROGRAMS.items()}
    wanted[path_tool] = (("path.c",), WINDOW)
    for program, (files, flags) in wanted.items():
        given = [f'-DPYTHON_VERSION=L"{python}"', *flags, *(str(sources / one) for one in files)]
        made = [str(resources), *LIBRARIES, "-o", str(program)]
        _run(job, [str(zig), "cc", *FLAGS, *given, *made])
    return path_tool


def version_numbers(version: str) -> str:
    """A version as Windows wants it: four numbers."""
    numbers = re.findall(r"\d+", version)[:3]
    return ".".join([*numbers, *["0"] * (4 - len(numbers))])


def _run(job: Job, command: list[str]) -> None:
    try:
        run_checked(job.commands, command)
    except CommandError as error:
        said = "\n".join(error.output[-LAST_LINES:])
        raise SetupError(f"zig failed. It said last:\n{said}") from error
