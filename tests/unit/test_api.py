"""Every name that `medusa_core.api` lists can be imported from it."""

import pytest

from medusa_core import api


def test_the_api_exports_exactly_its_listed_names() -> None:
    names = api._origins()
    assert len(names) > 80
    assert [name for name in names if getattr(api, name, None) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'Tensor'"):
        _ = api.Tensor  # type: ignore[attr-defined]
