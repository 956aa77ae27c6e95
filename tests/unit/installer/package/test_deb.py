"""The Debian package: what its files promise, and that it builds without a complaint."""

import configparser
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import medusa_core
from installer import manual
from installer.bootstrap.launch import OLDEST
from installer.errors import SetupError
from installer.launchers import PROGRAMS
from installer.layout import Layout, this_repository
from installer.package import deb
from installer.package.deb import debian_changelog, read_releases
from installer.package.format import Job
from installer.process import SystemCommands
from medusa_core.__main__ import COMMANDS
from tests.support.installer.fakes import FakeMachine

LAYOUT = this_repository()
INSTALLER = LAYOUT.root / "installer"
SHARE, DEBIAN = INSTALLER / "share", INSTALLER / "debian"
MIME_TYPE = "application/x-gguf"
POSIX = pytest.mark.skipif(os.name == "nt", reason="for Debian")


def checked_by(*command: str) -> None:
    """Check a file by a tool, if it is installed."""
    if shutil.which(command[0]) is not None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the source package, without PROGRAM and the program's own output."""
    folder = tmp_path_factory.mktemp("source")
    job = Job(LAYOUT, SystemCommands(LAYOUT.root), folder, folder)
    releases = deb._releases(job)
    deb._write_debian(job, folder / "debian", releases)
    deb._write_share(job, folder / "share", releases)
    deb._write_launchers(folder / "bin")
    deb._write_docs(job, folder / "doc")
    return folder


def test_a_desktop_opens_a_gguf_file_with_the_window(source: Path) -> None:
    path = source / "share" / "medusa-chat.desktop"
    checked_by("desktop-file-validate", str(path))
    entry = configparser.ConfigParser(interpolation=None)
    entry.read_string(path.read_text(encoding="utf-8"))
    desktop = entry["Desktop Entry"]
    assert desktop["Exec"] == "medusa-chat %f"
    assert desktop["MimeType"] == f"{MIME_TYPE};"
    assert (source / "share" / f"{desktop['Icon']}.svg").is_file()
    assert (source / "share" / f"{desktop['Icon']}.png").read_bytes().startswith(b"\x89PNG")


def test_the_type_of_gguf_files_is_known_by_name_and_by_content() -> None:
    (kind,) = ElementTree.parse(DEBIAN / "medusa-chat.sharedmimeinfo").getroot()
    found = {element.tag.rpartition("}")[2]: element for element in kind.iter()}
    assert kind.get("type") == MIME_TYPE
    assert found["glob"].get("pattern") == "*.gguf"
    assert (found["match"].get("value"), found["match"].get("offset")) == ("GGUF", "0")
    assert found["icon"].get("name") == deb.APP_ID


def test_the_software_centre_gets_this_version_and_its_programs(source: Path) -> None:
    path = source / "share" / f"{deb.APP_ID}.metainfo.xml"
    checked_by("appstreamcli", "validate", "--no-net", str(path))
    about = ElementTree.parse(path).getroot()
    assert about.findtext("id") == deb.APP_ID
    assert about.findtext("launchable") == "medusa-chat.desktop"
    assert about.findtext("provides/mediatype") == MIME_TYPE
    programs = {one.text for one in about.findall("provides/binary")}
    assert programs == set(deb.PROGRAMS) == set(PROGRAMS)
    releases = [one.get("version") for one in about.findall("releases/release")]
    assert releases[0] == medusa_core.__version__
    assert "0.1.0" in releases
    assert all(one.findtext("description/ul/li") for one in about.findall("releases/release"))


def test_debian_parses_the_changelog(source: Path) -> None:
    path = source / "debian" / "changelog"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"medusa-chat ({medusa_core.__version__}) unstable; urgency=medium"
    assert max(len(line) for line in lines if not line.startswith(" -- ")) < 80
    assert re.match(r" -- .+ <.+@.+>  \w{3}, \d\d \w{3} \d{4} 12:00:00 \+0000$", lines[-1])
    if shutil.which("dpkg-parsechangelog"):
        command = ["dpkg-parsechangelog", "--all", "--file", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""


def test_a_changelog_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deb, "program_version", lambda _: "99.0")
    with pytest.raises(SetupError, match=r"doesn't begin with version 99\.0"):
        deb._releases(Job(LAYOUT, SystemCommands(LAYOUT.root), tmp_path, tmp_path))


def test_a_changelog_line_may_be_long_and_contain_markup() -> None:
    (release, *_) = read_releases(LAYOUT)
    line = "`medusa` " + "does a great many things " * 8
    written = debian_changelog((type(release)("9", release.day, (line,)),), "A <a@b.c>")
    assert "`" not in written
    assert " ".join(written.split("*")[1].split("--")[0].split()) == line.replace("`", "").strip()


def test_a_changelog_needs_nothing_newer_than_python_3_10(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("datetime.UTC")
    anew = runpy.run_path(deb.__file__)
    written = anew["debian_changelog"](anew["read_releases"](LAYOUT), "A <a@b.c>")
    assert "12:00:00 +0000" in written


def test_a_change_may_continue_in_the_next_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    text = "# Changelog\n\n## 9.0 (2026-01-02)\n\n- One that\n  goes on.\n- Two.\n"
    (tmp_path / "docs" / "changelog.md").write_text(text, encoding="utf-8")
    (release,) = read_releases(Layout(tmp_path))
    assert release.lines == ("One that goes on.", "Two.")


def test_the_package_depends_on_the_windows_libraries_and_the_first_starts_python(
    source: Path,
) -> None:
    control = (source / "debian" / "control").read_text(encoding="utf-8")
    assert f" python3 (>= {OLDEST[0]}.{OLDEST[1]}),\n python3-tk,\n" in control.replace(
        "# The window of the first start.\n", ""
    )
    assert "${qt:Depends}" in control
    libraries = (source / "debian" / "qt-depends").read_text(encoding="utf-8").split(", ")
    assert {"libegl1", "libxcb-cursor0", "libwayland-client0"} <= set(libraries)


def test_installed_files_are_those_that_the_builder_writes(source: Path) -> None:
    lines = (DEBIAN / "medusa-chat.install").read_text(encoding="utf-8").splitlines()
    patterns = [line.split()[0] for line in lines]
    missing = [one for one in patterns if not list(source.glob(one))]
    written_by_the_program = {f"completions/{name}" for name in deb.COMPLETIONS.values()}
    assert set(missing) == {"program/*", *written_by_the_program}
    documents = (DEBIAN / "medusa-chat.docs").read_text(encoding="utf-8").split()
    assert all((source / name).is_file() for name in documents)
    manuals = (DEBIAN / "medusa-chat.manpages").read_text(encoding="utf-8").split()
    assert manuals == [f"man/{name}.1" for name in deb.PROGRAMS]


@POSIX
def test_a_launcher_passes_arguments_unchanged(source: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    for name in deb.PROGRAMS:
        program = source / "bin" / name
        script = tmp_path / name
        script.write_text(program.read_text().replace("/usr/bin/python3", str(python)))
        command = ["sh", str(script), "a b", "$c", ""]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said == f"-Es\n/usr/lib/medusa-chat/launch.py\n{name}\na b\n$c\n\n"
        assert os.access(program, os.X_OK)


@POSIX
def test_purge_names_remaining_folders_and_touches_none(tmp_path: Path) -> None:
    kept = tmp_path / "ann" / ".local/share/medusa-chat"
    kept.mkdir(parents=True)
    (tmp_path / "system" / ".config/medusa-chat").mkdir(parents=True)
    getent = tmp_path / "getent"
    people = {"ann": 1000, "bob": 1001, "system": 300}
    lines = "".join(f"echo {n}:x:{i}:{i}::{tmp_path / n}:/bin/sh\n" for n, i in people.items())
    getent.write_text(f"#!/bin/sh\n{lines}")
    getent.chmod(0o755)
    script = (DEBIAN / "medusa-chat.postrm").read_text(encoding="utf-8")

    def run(what: str) -> str:
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        command = ["sh", "-c", script.replace("#DEBHELPER#", ""), "postrm", what]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    said = run("purge")
    assert [line.strip() for line in said.splitlines() if line.startswith("  ")] == [str(kept)]
    assert kept.is_dir()
    assert run("remove") == run("upgrade") == ""


def test_manual_pages_name_each_command_and_option() -> None:
    page = manual.medusa_page()
    assert [name for name in COMMANDS if f'.SS "medusa {name}"' not in page] == []
    assert "\\-\\-temperature" in page or "\\-\\-set" in page
    assert "%(" not in page
    window = manual.window_page()
    assert all(f"\\fB{one}" in window for one in ("\\-\\-theme", "MODEL", "\\-\\-data\\-dir"))
    assert medusa_core.__version__ in window


def test_words_are_not_interpreted_as_roff_requests() -> None:
    assert manual._text(".so /etc/passwd\n'x \\fB -") == "\\&.so /etc/passwd\n\\&'x \\efB \\-"


def test_the_apparmor_profile_reports_only_until_somebody_changes_it() -> None:
    path = SHARE / "usr.bin.medusa-chat"
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^profile .* flags=\(.*complain.*\) \{$", text, re.MULTILINE)
    if Path("/etc/apparmor.d/tunables/global").exists():
        checked_by("apparmor_parser", "--skip-kernel-load", "--skip-cache", str(path))


def test_without_the_tools_the_message_names_their_packages(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deb, "SYSTEM_PATH", str(tmp_path))
    with pytest.raises(SetupError) as raised:
        deb.build_deb(Job(machine.layout, machine, tmp_path, tmp_path))
    assert raised.value.mend == "sudo apt-get install dpkg-dev debhelper dh-python"


@pytest.mark.slow
@pytest.mark.skipif(
    not all(shutil.which(tool, path=deb.SYSTEM_PATH) for tool in deb.TOOLS),
    reason="needs debhelper and dh-python",
)
def test_the_package_builds_and_passes_lintian(tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    work.mkdir()
    package = deb.build_deb(Job(LAYOUT, SystemCommands(LAYOUT.root), out, work))
    if shutil.which("lintian"):
        command = ["lintian", "--allow-root", "--fail-on", "error,warning", str(package)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        assert done.stdout == ""
    unpacked = tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "--extract", str(package), str(unpacked)], check=True)
    program = unpacked / "usr/lib/medusa-chat"
    names = {path.name for path in program.iterdir()}
    wheel = f"medusa_chat-{medusa_core.__version__}-py3-none-any.whl"
    assert names == {"icon.png", "installer", "launch.py", "uv", wheel}
    command = [sys.executable, "-Es", str(program / "launch.py"), "medusa", "--help"]
    env = {**os.environ, "MEDUSA_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "medusa update --yes" in done.stderr
