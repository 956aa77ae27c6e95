"""Button that shows the progress of a job whose dialog may be closed."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from app.i18n.numbers import Number
from app.widgets.explain import explain


class JobButton(QToolButton):
    """Button with name and progress of a job; hidden while none runs.

    Args:
        name: Name of the job.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName("jobButton")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._name = name
        self._share = ""
        self._has_room = True
        self.hide()

    def show_progress(self, share: float, stage: str) -> None:
        """Show the progress of the job.

        Args:
            share: Progress of the stage; negative if nothing runs.
            stage: Stage and time left.
        """
        self.setVisible(share >= 0)
        self._share = f"{Number(max(0.0, share)):.0%}"
        self._show()
        explain(self, self.tr("{0}. Click to open.").format(stage))

    def show_name(self, has_room: bool) -> None:
        """Show or hide the name beside the progress."""
        self._has_room = has_room
        self._show()

    def _show(self) -> None:
        text = f"{self._name} {self._share}"
        self.setText(text if self._has_room else self._share)
        self.setAccessibleName(text)
