"""Qt's platforms without a screen, on which nobody sees message boxes or notifications."""

SCREENLESS = ("offscreen", "minimal", "vnc")
