"""The Debian package: a thin one, which makes each user's environment at their first start."""

from __future__ import annotations

import datetime
import re
import shutil
import textwrap
from dataclasses import dataclass
from email.utils import format_datetime
from pathlib import Path
from xml.sax.saxutils import escape

from app.startup.qt_libraries import COMMON, WAYLAND, XCB
from installer.console import say
from installer.errors import CommandError, SetupError
from installer.layout import Layout, program_licence, program_licence_id, program_version
from installer.package.format import Format, Job
from installer.package.wheel import fill_program
from installer.process import run_checked

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
_UTC = datetime.timezone.utc  # noqa: UP017 - Python 3.10 has no datetime.UTC


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


_HEADING = re.compile(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$")


@dataclass(frozen=True, slots=True)
class Release:
    """A version.

    Attributes:
        version: its name.
        day: when it was made.
        lines: what a user notices, one line a change.
    """

    version: str
    day: datetime.date
    lines: tuple[str, ...]


def read_releases(layout: Layout) -> tuple[Release, ...]:
    """Return all versions, the newest first."""
    text = (layout.root / "docs" / "changelog.md").read_text(encoding="utf-8")
    releases: list[Release] = []
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            day = datetime.date.fromisoformat(heading[2])
            releases.append(Release(heading[1], day, ()))
        elif line.startswith("- ") and releases:
            last = releases[-1]
            releases[-1] = Release(last.version, last.day, (*last.lines, line[2:].strip()))
        elif line.startswith("  ") and releases and releases[-1].lines:  # goes on in the next line
            last = releases[-1]
            longer = f"{last.lines[-1]} {line.strip()}"
            releases[-1] = Release(last.version, last.day, (*last.lines[:-1], longer))
    return tuple(releases)


def seconds_of(release: Release) -> int:
    """Return noon of the release's day in seconds since 1970, the time of all packed files."""
    noon = datetime.time(12, tzinfo=_UTC)
    return int(datetime.datetime.combine(release.day, noon).timestamp())


def appstream_releases(releases: tuple[Release, ...]) -> str:
    """Return the `<releases>` of an AppStream file."""
    written = []
    for one in releases:
        items = "".join(f"          <li>{escape(_plain(line))}</li>\n" for line in one.lines)
        changes = f"      <description>\n        <ul>\n{items}        </ul>\n      </description>\n"
        head = f'    <release version="{one.version}" date="{one.day}">\n'
        written.append(f"{head}{changes if items else ''}    </release>\n")
    return "  <releases>\n" + "".join(written) + "  </releases>\n"


def debian_changelog(releases: tuple[Release, ...], maintainer: str) -> str:
    """Return the content of `debian/changelog`."""
    entries = []
    for one in releases:
        lines = "\n".join(
            textwrap.fill(
                _plain(line),
                78,
                initial_indent="  * ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in one.lines
        )
        day = datetime.datetime.fromtimestamp(seconds_of(one), _UTC)
        entries.append(
            f"medusa-chat ({one.version}) unstable; urgency=medium\n\n{lines}\n\n"
            f" -- {maintainer}  {format_datetime(day)}\n"  # in English, whatever the locale
        )
    return "\n".join(entries)


def _plain(line: str) -> str:
    """Return a line without Markdown's code marks."""
    return line.replace("`", "")
