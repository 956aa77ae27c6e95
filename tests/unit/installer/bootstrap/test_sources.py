"""Where packages come from: a mirror, uv's variables, pip's configuration."""

from pathlib import Path

import pytest

from installer.bootstrap.pip_configuration import read_pip_configuration
from installer.bootstrap.sources import find_sources, shown_address
from installer.errors import SetupError
from tests.support.installer.fakes import make_wheel


def pip_conf(tmp_path: Path, text: str, name: str = "pip.conf") -> dict[str, str]:
    """Variables that lead pip to a file alone."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return {"PIP_CONFIG_FILE": str(path), "HOME": str(tmp_path)}


def test_without_settings_uv_uses_its_default_index() -> None:
    assert find_sources("", {"PIP_CONFIG_FILE": "/dev/null"}, "linux").env == {}


def test_a_folder_of_wheels_is_the_only_source(tmp_path: Path) -> None:
    make_wheel(tmp_path, "torch", "1.0", {})
    for mirror in (str(tmp_path), tmp_path.as_uri()):
        sources = find_sources(mirror)
        assert sources.options == ("--no-index",)
        assert sources.env == {"UV_FIND_LINKS": str(tmp_path)}
        assert sources.is_folder


def test_a_folder_of_folders_is_an_index(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    sources = find_sources(str(tmp_path))
    assert sources.env == {"UV_DEFAULT_INDEX": tmp_path.as_uri()}
    assert sources.options == ()
    assert not sources.is_folder


def test_python_builds_of_a_mirror_are_used(tmp_path: Path) -> None:
    make_wheel(tmp_path, "torch", "1.0", {})
    (tmp_path / "python").mkdir()
    mirror = find_sources(str(tmp_path)).env["UV_PYTHON_INSTALL_MIRROR"]
    assert mirror == (tmp_path / "python").as_uri()


def test_an_invalid_mirror_is_reported(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for mirror, words in (
        ("/no/such/folder", "is no folder"),
        ("ftp://packages.invalid/simple", "no address"),
        ("https:///simple", "no address"),
        ("https://[::1/simple", "no address"),
        ("https://packages.invalid/a b", "no address"),
        ("http://93.184.216.34/simple", "could be changed on its way"),
        (str(tmp_path / "empty"), "holds no packages"),
    ):
        with pytest.raises(SetupError, match=words) as caught:
            find_sources(mirror)
        assert caught.value.mend


def test_an_index_replaces_the_default_one() -> None:
    for address in ("https://packages.invalid/simple", "http://127.0.0.1:8/x"):
        assert find_sources(address).env == {"UV_DEFAULT_INDEX": address}


def test_uvs_own_variables_are_left_to_uv(tmp_path: Path) -> None:
    env = pip_conf(tmp_path, "[global]\nindex-url = https://packages.invalid/simple\n")
    assert find_sources("", {**env, "UV_DEFAULT_INDEX": "https://a.invalid"}, "linux").env == {}


def test_pips_configuration_becomes_variables_of_uv(tmp_path: Path) -> None:
    env = pip_conf(
        tmp_path,
        "[global]\nindex-url = https://a.invalid/simple\nextra_index_url =\n"
        "    https://b.invalid/simple\n    https://c.invalid/simple\nfind-links = ~/wheels\n"
        "trusted-host = b.invalid\ncert = /etc/own.pem\nproxy = http://proxy.invalid:3128\n",
    )
    sources = find_sources("", env, "linux")
    assert sources.with_folder(tmp_path).variables() == {
        "SSL_CERT_FILE": "/etc/own.pem",
        "ALL_PROXY": "http://proxy.invalid:3128",
        "UV_DEFAULT_INDEX": "https://a.invalid/simple",
        "UV_INDEX": "https://b.invalid/simple https://c.invalid/simple",
        "UV_FIND_LINKS": f"{Path('~/wheels').expanduser()},{tmp_path}",
        "UV_INSECURE_HOST": "b.invalid",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_later_configuration_files_of_pip_take_precedence(tmp_path: Path) -> None:
    home = tmp_path / ".config" / "pip"
    home.mkdir(parents=True)
    (home / "pip.conf").write_text("[global]\nindex-url = https://user.invalid\n", "utf-8")
    alone = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path)}
    assert read_pip_configuration(alone, "linux").index == "https://user.invalid"
    named = {**alone, **pip_conf(tmp_path, "[install]\nindex-url = https://file.invalid\n")}
    assert read_pip_configuration(named, "linux").index == "https://file.invalid"
    variable = {**named, "PIP_INDEX_URL": "https://variable.invalid"}
    assert read_pip_configuration(variable, "linux").index == "https://variable.invalid"


def test_no_index_is_respected(tmp_path: Path) -> None:
    env = pip_conf(tmp_path, "[global]\nno-index = true\nfind-links = /wheels\n")
    sources = find_sources("", env, "linux")
    assert sources.options == ("--no-index",)
    assert sources.variables().items() >= {"UV_FIND_LINKS": "/wheels", "UV_OFFLINE": "1"}.items()
    assert sources.is_folder


def test_a_broken_configuration_of_pip_is_ignored(tmp_path: Path) -> None:
    broken = ("no section = 1", "[global", "[global]\nindex-url", "\0", "[global]\n%(x)s=%(y)s")
    for text in broken:
        env = find_sources("", pip_conf(tmp_path, text), "linux").env
        assert not [name for name in env if name.startswith("UV_")], text


def test_an_address_is_shown_without_its_password() -> None:
    assert shown_address("https://me:secret@a.invalid:8/x?y") == "https://a.invalid:8/x"
    assert shown_address("torch==1.0") == "torch==1.0"


def test_a_folder_with_a_comma_is_one_place(tmp_path: Path) -> None:
    make_wheel(tmp_path / "a,b", "torch", "1.0", {})
    assert find_sources(str(tmp_path / "a,b")).env["UV_FIND_LINKS"].endswith("/a%2Cb")
