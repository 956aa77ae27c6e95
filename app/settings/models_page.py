"""The page of models: where they compute, rest and come from."""

from __future__ import annotations

from app.settings.declaration import SettingsPage
from app.settings.device_box import DeviceBox
from app.settings.keys_page import KeysPage
from app.settings.store import SettingsStore
from app.settings.token_box import TokenBox
from app.theme.appearance import Appearance


class ModelsPage(KeysPage):
    """Settings of models.

    Attributes:
        device_box: What they compute on.
    """

    def __init__(self, store: SettingsStore, appearance: Appearance, token_box: TokenBox) -> None:
        """Make the page, and look which devices there are.

        Args:
            store: Holds the settings.
            appearance: Sizes.
            token_box: Who the user is to the Hub.
        """
        self.device_box = DeviceBox(lambda device: store.set(device=device))
        super().__init__(SettingsPage.MODELS, store, appearance, {"device": self.device_box.editor})
        self.add_row(
            self.tr("Hub token"),
            token_box,
            self.tr("Some models need a Hugging Face account and its token."),
        )
        self.end()
        self.device_box.ask()
