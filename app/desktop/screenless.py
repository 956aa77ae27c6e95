"""Qt's platforms that draw on no screen: nobody sees a message box or a notification there."""

SCREENLESS = ("offscreen", "minimal", "vnc")
