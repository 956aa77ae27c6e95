"""Settings of the Hub: what of the environment is heeded, and who sees the token."""

from pathlib import Path

from medusa_core.hub.settings import save_token, settings_from


def test_a_token_is_readable_only_by_its_user_and_never_shown(tmp_path: Path) -> None:
    environment = {"HF_HOME": str(tmp_path)}
    path = save_token(" hf_secret \n", environment)
    assert path.stat().st_mode & 0o777 == 0o600
    settings = settings_from(environment)
    assert settings.token == "hf_secret"
    assert "hf_secret" not in repr(settings)


def test_environment_variables_of_huggingface_hub_are_respected(tmp_path: Path) -> None:
    reported = {
        "HF_ENDPOINT": "https://mirror.example/",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": "1",
        "HF_TOKEN": "x",
    }
    settings = settings_from(reported)
    assert settings.endpoint == "https://mirror.example"
    assert settings.cache_dir == tmp_path / "cache"
    assert settings.is_offline
    assert settings_from({"HF_HOME": "/h"}).cache_dir == Path("/h/hub")
