"""Settings page of models: device, folders and Hub."""

from __future__ import annotations

from app.settings.declaration import SettingsPage
from app.settings.device_box import DeviceBox
from app.settings.keys_page import KeysPage
from app.settings.store import SettingsStore
from app.settings.token_box import TokenBox
from app.theme.appearance import Appearance


class ModelsPage(KeysPage):
    """Settings page of models.

    Attributes:
        device_box: Selector of the compute device.
    """

    def __init__(self, store: SettingsStore, appearance: Appearance, token_box: TokenBox) -> None:
        """Create the page and look for devices.

        Args:
            store: Store of the settings.
            appearance: Theme and sizes.
            token_box: Editor of the Hub token.
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
