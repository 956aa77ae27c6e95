"""The application for macOS: what its files promise; its scripts, with a Mac's tools imitated."""

import os
import plistlib
import re
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import medusa_core
from installer.layout import this_repository
from installer.package import macos
from installer.package.icons import ICNS_TYPES, icns_file
from installer.package.windows import PYTHON

LAYOUT = this_repository()
SOURCES = LAYOUT.root / macos.SOURCES
POSIX = pytest.mark.skipif(os.name == "nt", reason="its scripts are for sh")
# A Python that says how it was called.
SAYS_ITS_ARGUMENTS = '#!/bin/sh\nprintf "%s\\n" "$@" > "$SAID"\nexit "${STATUS:-0}"\n'
# uv that brings such a Python, if the mirror is right.
UV = f"""#!/bin/sh
printf '%s\\n' "$*" >> "$UV_SAID"
case ${{UV_PYTHON_INSTALL_MIRROR:-}} in *bad*) echo "error: no such mirror"; exit 2;; esac
bin="$UV_PYTHON_INSTALL_DIR/cpython-{PYTHON}.7-macos-aarch64-none/bin"
mkdir -p "$bin" && cp "$PYTHON_COPY" "$bin/python3"
"""


class Mac:
    """A folder that looks to the scripts like a Mac with the application on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "Home of Zoë"
        self.archive = root / "archive"
        self.contents = self.archive / macos.BUNDLE / "Contents"
        self.installed = self.home / "Applications" / macos.BUNDLE
        self.home.mkdir()
        macos.write_bundle(SOURCES, self.contents, "1.2.3")
        macos.write_commands(SOURCES, self.archive)
        self.tool("sysctl", "#!/bin/sh\necho 1\n")
        for name in ("open", "xattr", "osascript"):
            self.tool(name, f'#!/bin/sh\necho "{name} $*" >> "$ASKED"\n')
        self.program(self.contents / "Resources" / "uv", UV)
        self.program(root / "python-copy", SAYS_ITS_ARGUMENTS)

    def program(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def tool(self, name: str, text: str) -> None:
        self.program(self.root / "bin" / name, text)

    def said(self, name: str = "said") -> list[str]:
        path = self.root / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def run(
        self, program: Path, *words: str, stdin: str = "", **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        env = {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.home),
            "SAID": str(self.root / "said"),
            "UV_SAID": str(self.root / "uv-said"),
            "ASKED": str(self.root / "asked"),
            "PYTHON_COPY": str(self.root / "python-copy"),
            **variables,
        }
        return subprocess.run(
            [program, *words], env=env, input=stdin, capture_output=True, text=True, check=False
        )


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


def test_the_application_opens_gguf_files_without_becoming_their_default(tmp_path: Path) -> None:
    macos.write_bundle(SOURCES, tmp_path / "Contents", medusa_core.__version__)
    told = plistlib.loads((tmp_path / "Contents" / "Info.plist").read_bytes())
    (files,) = told["CFBundleDocumentTypes"]
    (kind,) = told["UTImportedTypeDeclarations"]
    assert files["LSItemContentTypes"] == [kind["UTTypeIdentifier"]]
    assert kind["UTTypeTagSpecification"] == {"public.filename-extension": ["gguf"]}
    assert files["LSHandlerRank"] == "Alternate"
    assert told["CFBundleShortVersionString"] == medusa_core.__version__
    program = tmp_path / "Contents" / "MacOS" / told["CFBundleExecutable"]
    assert program.stat().st_mode & stat.S_IXUSR


def test_the_downloaded_python_is_a_supported_version() -> None:
    project = tomllib.loads(LAYOUT.pyproject.read_text(encoding="utf-8"))["project"]
    oldest, below = re.findall(r"3\.(\d+)", project["requires-python"])
    assert int(oldest) <= int(PYTHON.removeprefix("3.")) < int(below)


def test_an_icon_has_a_picture_for_each_type() -> None:
    pictures = {size: bytes([size % 251]) * size for size in ICNS_TYPES.values()}
    data, place, found = icns_file(pictures), 8, {}
    assert data[:4] == b"icns"
    assert int.from_bytes(data[4:8], "big") == len(data)
    while place < len(data):
        size = int.from_bytes(data[place + 4 : place + 8], "big")
        found[data[place : place + 4].decode()] = data[place + 8 : place + size]
        place += size
    assert found == {name: pictures[size] for name, size in ICNS_TYPES.items()}


@POSIX
def test_an_archive_keeps_executable_bits_and_is_reproducible(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    for name, mode in (("below/program", 0o700), ("text", 0o600)):
        (folder / name).write_text(name, encoding="utf-8")
        (folder / name).chmod(mode)
    macos.pack(folder, tmp_path / "one.zip")
    os.utime(folder / "text", (1e9, 1e9))
    macos.pack(folder, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as packed:
        modes = {one.filename: one.external_attr >> 16 & 0o777 for one in packed.infolist()}
    assert modes == {"below/program": 0o755, "text": 0o644}


@POSIX
def test_scripts_pass_shellcheck_where_it_is_installed() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck isn't installed")
    scripts = [SOURCES / name for name in ("launcher.sh", *macos.COMMANDS)]
    done = subprocess.run(
        ["shellcheck", "-x", *scripts], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@POSIX
def test_what_is_installed_runs_the_bootstrap_with_what_was_typed(mac: Mac) -> None:
    installed = mac.run(mac.archive / "install.command")
    assert installed.returncode == 0, installed.stdout
    assert mac.said("uv-said")[0].endswith(f" cpython-{PYTHON}-macos-aarch64-none")
    asked = mac.said("asked")
    assert asked[0].startswith("xattr -dr com.apple.quarantine")
    assert asked[-1] == f"open {mac.installed}"
    command = mac.home / ".local" / "bin" / "medusa"
    assert mac.run(command, "chat", "a b", "*", 'ä"', STATUS="7").returncode == 7
    launch = str(mac.installed / "Contents" / "Resources" / "launch.py")
    assert mac.said() == ["-E", "-s", "-X", "utf8", launch, "medusa", "chat", "a b", "*", 'ä"']
    mac.run(mac.installed / "Contents" / "MacOS" / "medusa-chat", "model.gguf")
    assert mac.said()[-2:] == ["medusa-chat", "model.gguf"]


@POSIX
def test_without_a_python_it_says_what_to_open(mac: Mac) -> None:
    failed = mac.run(mac.archive / "install.command", UV_PYTHON_INSTALL_MIRROR="file:///bad")
    assert failed.returncode == 1
    assert "error: no such mirror" in failed.stdout
    assert "UV_PYTHON_INSTALL_MIRROR" in failed.stdout
    for name in macos.PROGRAMS:
        done = mac.run(mac.installed / "Contents" / "MacOS" / name)
        assert done.returncode == 2
        assert "Open install.command" in done.stderr
    assert "osascript" in mac.said("asked")[-1]
    assert mac.run(mac.archive / "install.command").returncode == 0


@POSIX
def test_an_intel_mac_is_refused_with_a_message(mac: Mac) -> None:
    mac.tool("sysctl", "#!/bin/sh\nexit 1\n")
    done = mac.run(mac.archive / "install.command")
    assert done.returncode == 1
    assert "Apple silicon" in done.stdout


@POSIX
def test_installing_twice_and_removing_leaves_nothing(mac: Mac) -> None:
    for _ in range(2):  # over itself, as an update does
        assert mac.run(mac.archive / "install.command").returncode == 0
    uninstall = mac.archive / "uninstall.command"
    assert mac.run(uninstall, stdin="n\n").returncode == 0
    assert mac.installed.exists()
    assert mac.said()[-1] == "uninstall"
    removed = mac.run(uninstall, "--yes")
    assert removed.returncode == 0, removed.stderr
    assert mac.said()[-1] == "--yes"
    assert not [path for path in mac.home.rglob("*") if not path.is_dir()]


@POSIX
def test_a_failed_start_without_a_terminal_is_shown_in_a_box(mac: Mac) -> None:
    launch = LAYOUT.root / "installer" / "bootstrap" / "launch.py"
    mac.tool("osascript", '#!/bin/sh\nprintf "%s\\n" "$3" >> "$ASKED"\n')
    shutil.copy(launch, mac.root / "launch.py")  # nothing to hand over to: an ImportError
    code = "import runpy, sys; sys.platform = 'darwin'; sys.argv = ['launch.py', 'medusa-chat']; "
    code += f"runpy.run_path({str(mac.root / 'launch.py')!r}, run_name='__main__')"
    done = mac.run(Path(sys.executable), "-I", "-c", code)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in "\n".join(mac.said("asked"))
