"""How the window of the first start looks: light and plain, in the program's own colours."""

import ctypes
import sys
import tkinter as tk
from contextlib import suppress
from tkinter import font, ttk

_TITLE_SIZE = 1.5  # of ordinary text
WIDTH = 560  # of the text, in pixels of an ordinary screen
WINDOW = "#fbfbfa"
SURFACE = "#ffffff"
RAISED = "#f3f3f1"
HOVER = "#e9e9e6"
BORDER = "#dededa"
TEXT = "#1d1e20"
MUTED = "#62656b"
DISABLED = "#a0a3a8"
ACCENT = "#1f5f8b"
ACCENT_HOVER = "#184d72"
DANGER = "#b3361e"


def be_sharp() -> None:
    """Tell Windows, before the window is made, that it supports high resolutions."""
    if sys.platform == "win32":
        with suppress(AttributeError, OSError):
            ctypes.windll.shcore.SetProcessDpiAwareness(1)


def apply_style(root: tk.Tk) -> font.Font:
    """Set colours and fonts of all widgets.

    Returns:
        The headline's font, which lives as long as this object.
    """
    root.configure(background=WINDOW)
    style = ttk.Style(root)
    style.theme_use("clam")
    style.configure(
        ".",
        background=WINDOW,
        foreground=TEXT,
        bordercolor=BORDER,
        lightcolor=WINDOW,
        darkcolor=WINDOW,
        troughcolor=RAISED,
        focuscolor=ACCENT,
    )
    title = font.nametofont("TkDefaultFont").copy()
    title.configure(size=int(title.actual("size") * _TITLE_SIZE), weight="bold")
    style.configure("Title.TLabel", font=title)
    style.configure("Muted.TLabel", foreground=MUTED)
    style.configure("Danger.TLabel", foreground=DANGER)
    _style_buttons(style)
    style.configure("TEntry", fieldbackground=SURFACE, padding=6, lightcolor=SURFACE)
    style.map("TEntry", bordercolor=[("focus", ACCENT)], foreground=[("disabled", DISABLED)])
    style.configure("Horizontal.TProgressbar", background=ACCENT, thickness=6, bordercolor=RAISED)
    style.configure("Horizontal.TProgressbar", lightcolor=ACCENT, darkcolor=ACCENT)
    style.map("TCheckbutton", background=[("active", WINDOW)], foreground=[("disabled", DISABLED)])
    style.configure("TCheckbutton", indicatorbackground=SURFACE, indicatorforeground=ACCENT)
    return title


def centre(root: tk.Tk) -> None:
    """Centre the window on the screen."""
    root.update_idletasks()
    width, height = root.winfo_reqwidth(), root.winfo_reqheight()
    left = max(0, (root.winfo_screenwidth() - width) // 2)
    top = max(0, (root.winfo_screenheight() - height) // 3)
    root.geometry(f"+{left}+{top}")


def _style_buttons(style: ttk.Style) -> None:
    style.configure("TButton", background=RAISED, padding=(14, 6), relief="flat")
    style.map(
        "TButton",
        background=[("disabled", RAISED), ("active", HOVER)],
        foreground=[("disabled", DISABLED)],
        bordercolor=[("focus", ACCENT)],
    )
    style.configure("Primary.TButton", background=ACCENT, foreground=SURFACE)
    style.map(
        "Primary.TButton",
        background=[("disabled", HOVER), ("active", ACCENT_HOVER)],
        foreground=[("disabled", DISABLED)],
    )
