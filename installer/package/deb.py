"""The Debian package: a thin one, which makes each user's environment at their first start."""

import shutil
from pathlib import Path

from app.startup.qt_libraries import COMMON, WAYLAND, XCB
from installer.console import say
from installer.errors import CommandError, SetupError
from installer.package.changelog import (
    Release,
    appstream_releases,
    debian_changelog,
    read_releases,
    seconds_of,
)
from installer.package.format import Format, Job
from installer.package.wheel import fill_program
from installer.process import run_checked
from installer.version import program_licence, program_licence_id, program_version

APP_ID = "org.medusachat.MedusaChat"
# uv's builds by Debian's names of processors.
UV_BUILDS = {"amd64": "linux-x86_64", "arm64": "linux-aarch64"}
# What builds it, and the package that each comes with.
TOOLS = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "dh_python3": "dh-python"}
# These are scripts of the system's Python, whatever other ones stand on the path.
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Neither a Python of the user's own nor packages in their home reach the start.
LAUNCHER = """\
#!/bin/sh
exec /usr/bin/python3 -Es /usr/lib/medusa-chat/launch.py {name} "$@"
"""
PROGRAMS = ("medusa", "medusa-chat")
COMPLETIONS = {"bash": "medusa", "zsh": "_medusa", "fish": "medusa.fish"}
ANSWER_S = 60.0
LAST_LINES = 12


def build_deb(job: Job) -> Path:
    """Build `medusa-chat_VERSION_ARCHITECTURE.deb`.

    Raises:
        SetupError: a tool is missing or fails, or there is no build of uv for this processor.
    """
    _check_tools(job)
    architecture = _architecture(job)
    releases = _releases(job)
    source = job.work / f"medusa-chat-{releases[0].version}"
    _write_debian(job, source / "debian", releases)
    _write_share(job, source / "share", releases)
    _write_launchers(source / "bin")
    _write_docs(job, source / "doc")
    _write_helps(job, source)
    fill_program(job, source / "program", UV_BUILDS[architecture])
    _build(job, source, seconds_of(releases[0]))
    name = f"medusa-chat_{releases[0].version}_{architecture}.deb"
    built = job.out / name
    shutil.copyfile(job.work / name, built)
    say(f"{built} ({built.stat().st_size / 1e6:.1f} MB)")
    return built


def metainfo(template: str, releases: tuple[Release, ...], licence_id: str) -> str:
    """Fill an AppStream file with the program's licence and what is new in each version."""
    text = template.replace("@LICENCE_ID@", licence_id)
    return text.replace("  <releases>\n  </releases>\n", appstream_releases(releases))


def _check_tools(job: Job) -> None:
    missing = [of for tool, of in TOOLS.items() if not shutil.which(tool, path=SYSTEM_PATH)]
    if missing:
        raise SetupError(
            "The tools that build Debian packages aren't here.",
            f"sudo apt-get install {' '.join(missing)}",
        )
    if not job.layout.python.exists():
        raise SetupError(
            "The manual pages are written by the program, which isn't set up here yet.",
            "python3 installer run --no-model",
        )


def _architecture(job: Job) -> str:
    """Return Debian's name of this processor."""
    name = job.commands.capture(["dpkg", "--print-architecture"], ANSWER_S).text.strip()
    if name not in UV_BUILDS:
        raise SetupError(
            f"There is no package for the processor {name}.",
            f"Build it on one of these: {', '.join(UV_BUILDS)}.",
        )
    return name


def _releases(job: Job) -> tuple[Release, ...]:
    """Return the releases, the version to build first."""
    version, releases = program_version(job.layout), read_releases(job.layout)
    if not releases or releases[0].version != version:
        raise SetupError(
            f"docs/changelog.md doesn't begin with version {version}.",
            f"Write what is new under the heading: ## {version} (YEAR-MONTH-DAY)",
        )
    return releases


def _write_debian(job: Job, folder: Path, releases: tuple[Release, ...]) -> None:
    shutil.copytree(job.layout.root / "installer" / "debian", folder)
    control = (folder / "control").read_text(encoding="utf-8")
    (maintainer,) = (
        line.partition(": ")[2] for line in control.splitlines() if line.startswith("Maintainer: ")
    )
    changelog = debian_changelog(releases, maintainer)
    (folder / "changelog").write_text(changelog, encoding="utf-8")
    terms = (folder / "copyright").read_text(encoding="utf-8")
    terms = terms.replace("@LICENCE_ID@", program_licence_id(job.layout))
    terms = terms.replace("@LICENCE@", program_licence(job.layout))
    (folder / "copyright").write_text(terms, encoding="utf-8")
    libraries = sorted({library.apt for library in (*COMMON, *XCB, *WAYLAND)})
    (folder / "qt-depends").write_text(", ".join(libraries), encoding="utf-8")


def _write_share(job: Job, folder: Path, releases: tuple[Release, ...]) -> None:
    """Write the files that desktops read: menu entry, icons, description."""
    shutil.copytree(job.layout.root / "installer" / "share", folder)
    (folder / "icon.png").rename(folder / f"{APP_ID}.png")
    icon = job.layout.root / "resources" / "icons" / "app.svg"
    shutil.copyfile(icon, folder / f"{APP_ID}.svg")
    about = folder / f"{APP_ID}.metainfo.xml"
    licence_id = program_licence_id(job.layout)
    text = metainfo(about.read_text(encoding="utf-8"), releases, licence_id)
    about.write_text(text, encoding="utf-8")


def _write_launchers(folder: Path) -> None:
    folder.mkdir()
    for name in PROGRAMS:
        program = folder / name
        program.write_text(LAUNCHER.format(name=name), encoding="utf-8")
        program.chmod(0o755)


def _write_docs(job: Job, folder: Path) -> None:
    folder.mkdir()
    shutil.copyfile(job.layout.licences, folder / "LICENCES.md")


def _write_helps(job: Job, source: Path) -> None:
    """Write manual pages and completions, as the program prints them."""
    python, plain = str(job.layout.python), {"COLUMNS": "80", "NO_COLOR": "1"}
    manual, completions = source / "man", source / "completions"
    manual.mkdir()
    run_checked(job.commands, [python, "-m", "installer.manual", str(manual)], plain)
    completions.mkdir()
    for shell, name in COMPLETIONS.items():
        asked = [python, "-m", "medusa_core", "completion", shell]
        written = job.commands.capture(asked, ANSWER_S, plain)
        if written.status != 0:
            raise SetupError(f"There is no completion for {shell}: {written.text}")
        (completions / name).write_text(written.text, encoding="utf-8")


def _build(job: Job, source: Path, seconds: int) -> None:
    """Build a source folder by debhelper; the package is written beside it."""
    environment = {"SOURCE_DATE_EPOCH": str(seconds), "PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"}
    script = 'cd "$1" && exec dpkg-buildpackage --build=binary --no-sign'
    try:
        run_checked(job.commands, ["sh", "-c", script, "sh", str(source)], environment)
    except CommandError as error:
        said = "\n".join(error.output[-LAST_LINES:])
        raise SetupError(f"dpkg-buildpackage failed. It said last:\n{said}") from error


SPEC = Format("deb", "for Debian and Ubuntu", build_deb)
