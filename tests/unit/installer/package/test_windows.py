"""The installer for Windows: what its files promise, and that it builds the same bytes twice."""

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from installer.errors import SetupError
from installer.layout import this_repository
from installer.package import windows
from installer.package.format import Job
from installer.package.icons import ico_file
from installer.package.wheel import ICON, carried_files
from installer.process import SystemCommands
from tests.support.installer.fakes import FakeMachine

LAYOUT = this_repository()
SCRIPT = (LAYOUT.root / windows.SCRIPT).read_text(encoding="utf-8")


def test_an_icon_holds_each_picture() -> None:
    pictures = {16: b"small", 256: b"large picture"}
    data = ico_file(pictures)
    assert struct.unpack_from("<HHH", data) == (0, 1, 2)
    for index, (size, picture) in enumerate(pictures.items()):
        width, _, _, _, _, bits, length, offset = struct.unpack_from(
            "<BBBBHHII", data, 6 + 16 * index
        )
        assert (width, bits) == (size % 256, 32)
        assert data[offset : offset + length] == picture


def test_installed_files_keep_their_folders_in_a_fixed_order(tmp_path: Path) -> None:
    program = tmp_path / "a $b"
    for name in ("launch.py", "installer/b.py", "installer/a.py", "installer/deep/c.py", "uv.exe"):
        (program / name).parent.mkdir(parents=True, exist_ok=True)
        (program / name).touch()
    source = str(program).replace("$", "$$")
    files = [f'File "{Path(source) / name}"' for name in ("launch.py", "uv.exe")]
    assert windows.install_commands(program).splitlines() == [
        'SetOutPath "$INSTDIR"',
        *files,
        'SetOutPath "$INSTDIR\\installer"',
        *(f'File "{Path(source) / "installer" / name}"' for name in ("a.py", "b.py")),
        'SetOutPath "$INSTDIR\\installer\\deep"',
        f'File "{Path(source) / "installer" / "deep" / "c.py"}"',
    ]


def test_the_uninstaller_removes_all_carried_files() -> None:
    """A folder may hold files of somebody else, so it removes ours by name."""
    body = SCRIPT[SCRIPT.index("Function ${prefix}RemoveProgram") :]
    body = body[: body.index("FunctionEnd")]
    deleted = set(re.findall(r'Delete "\$INSTDIR\\(.+)"', body))
    assert re.findall(r'RMDir /r "\$INSTDIR\\(.+)"', body) == ["installer"]
    carried = {name for name in carried_files(LAYOUT.root) if not name.startswith("installer/")}
    made = {"medusa_chat-*.whl", "uv.exe", "icon.png", "medusa-chat.ico", "medusa.cmd"}
    assert deleted == carried | made


def test_each_registry_key_that_is_written_is_removed() -> None:
    keys = set(re.findall(r'WriteReg\w+ HKCU "(.+?)"', SCRIPT))
    removed = set(re.findall(r'DeleteRegKey HKCU "(.+?)"', SCRIPT))
    values = set(re.findall(r'DeleteRegValue HKCU "(.+?)"', SCRIPT))
    kept = {key for key in keys if not any(key.startswith(one) for one in removed | values)}
    assert not kept
    # What others write there too is emptied of ours only.
    assert not any(key.endswith((".gguf", "OpenWithProgids")) for key in removed)
    assert values == {r"${CLASSES}\.gguf\OpenWithProgids"}
    assert not re.search(r"HKLM|HKCR|SetShellVarContext all|PROGRAMFILES", SCRIPT), "asks an admin"


@pytest.mark.parametrize(
    ("version", "numbers"), [("0.2.0", "0.2.0.0"), ("1.0", "1.0.0.0"), ("2.10.3rc4", "2.10.3.0")]
)
def test_windows_gets_a_version_of_four_numbers(version: str, numbers: str) -> None:
    assert windows.version_numbers(version) == numbers


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path / "checkout")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    job = Job(machine.layout, machine, tmp_path, tmp_path)
    with pytest.raises(SetupError) as failed:
        windows.build_windows(job)
    assert "nsis" in failed.value.mend.lower()
    assert not machine.commands


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("makensis") is None, reason="NSIS isn't installed")
@pytest.mark.timeout(1800)
def test_the_same_files_give_the_same_installer_bytes(tmp_path: Path) -> None:
    built = []
    for name in ("one", "two"):
        job = Job(LAYOUT, SystemCommands(LAYOUT.root), tmp_path / name, tmp_path / f"work-{name}")
        job.out.mkdir()
        job.work.mkdir()
        built.append(windows.build_windows(job).read_bytes())
    assert built[0] == built[1]
    assert built[0][:2] == b"MZ"
    # An installer's program runs on any Windows; it must be one for windows, not for terminals.
    offset = struct.unpack_from("<I", built[0], 0x3C)[0]
    machine, subsystem = (
        struct.unpack_from("<H", built[0], offset + place)[0] for place in (4, 92)
    )
    assert (machine, subsystem) == (0x8664, 2)


def test_the_script_compiles_if_nsis_is_installed(tmp_path: Path) -> None:
    """Warnings are errors; what it packs is of no matter here."""
    if shutil.which("makensis") is None:
        pytest.skip("NSIS isn't installed")
    program, icon, banner = (tmp_path / name for name in ("program.exe", "icon.ico", "banner.bmp"))
    head = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 58, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0)
    banner.write_bytes(head + bytes(4))
    program.write_bytes(b"MZ")
    icon.write_bytes(ico_file({256: (LAYOUT.root / ICON).read_bytes()}))
    (tmp_path / "files.nsh").write_text(f'File "{program}"\n', encoding="utf-8")
    defined = {
        "VERSION": "1.2.3",
        "VERSION_NUMBERS": "1.2.3.0",
        "FILES": tmp_path / "files.nsh",
        "ICON": icon,
        "BANNER": banner,
        "PYTHON": "3.13",
        "OUTPUT": tmp_path / "out.exe",
    }
    options = [f"-D{name}={value}" for name, value in defined.items()]
    command = ["makensis", "-NOCD", "-WX", *options, str(LAYOUT.root / windows.SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
