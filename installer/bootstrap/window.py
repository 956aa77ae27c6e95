"""The window of the first start, of an update and of a repair: plain Tk, no torch, no Qt."""

import queue
import threading
import tkinter as tk
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from tkinter import filedialog, messagebox, ttk

from installer.bootstrap import request
from installer.bootstrap.first_model import NAME
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted, install_version
from installer.bootstrap.program import Program
from installer.bootstrap.request import NAMES, describe
from installer.bootstrap.situation import Kind, Situation, texts_for
from installer.bootstrap.space import FIRST_MODEL, shown_bytes
from installer.bootstrap.start import give_up, last_words
from installer.bootstrap.window_style import RAISED, TEXT, WIDTH, apply_style, be_sharp, centre
from installer.errors import SetupError
from installer.process import CancelledError

DRAIN_EVERY_MS = 100
MIRROR_HINT = (
    "A folder of packages, or the address of your network's package index. Else leave it empty."
)


def decide(data: ProgramData, program: Program, found: Situation) -> bool:
    """Show the window, and carry out the user's decision.

    Args:
        data: where an installation goes.
        program: the package.
        found: why the window opens.

    Returns:
        Whether the program is to be started now.

    Raises:
        ImportError: there is no screen after all.
        SetupError: the package is damaged.
    """
    be_sharp()
    try:
        root = tk.Tk(className="medusa-chat")
    except tk.TclError as error:
        raise ImportError(str(error)) from error
    window = SetupWindow(root, data, program, found)
    root.mainloop()
    return window.starts


class SetupWindow:
    """Window of one page: what will be installed, a few choices, progress, the log.

    Attributes:
        root: Tk's window.
        starts: whether the program is to be started when the window is closed.
    """

    def __init__(self, root: tk.Tk, data: ProgramData, program: Program, found: Situation) -> None:
        self.root = root
        self.starts = False
        self._data = data
        self._program = program
        self._found = found
        self._texts = texts_for(found)
        self._wanted = self._first_wanted()
        self._reporter = WindowReporter(self)
        self._worker: threading.Thread | None = None
        root.title("Medusa Chat")
        self._title_font = apply_style(root)
        self._build()
        self._show_facts()
        centre(root)
        root.protocol("WM_DELETE_WINDOW", self.close)
        root.bind("<Escape>", lambda _: self.close())
        root.after(DRAIN_EVERY_MS, self._drain)

    # What the user does.

    def begin(self) -> None:
        """Handle the main button: install, or restore the previous version."""
        found = self._found
        if found.kind is Kind.FAILING and found.before is not None:
            self._attempt(lambda: give_up(self._data), self._finish)
        else:
            self._install(is_repair=found.kind in (Kind.DAMAGED, Kind.FAILING))

    def repair(self) -> None:
        """Install again, and compare every file."""
        self._install(is_repair=True)

    def leave(self) -> None:
        """Handle the other button: cancel the installation, or skip it."""
        if self._worker is not None:
            self.close()
        else:
            self.starts = self._found.kind in (Kind.NEWER, Kind.FAILING)
            self.root.destroy()

    def close(self) -> None:
        """Close the window; a running installation is cancelled after a question."""
        if self._worker is None:
            self.root.destroy()
        elif self.ask("Stop now? What was fetched is kept for the next time."):
            self._reporter.cancel.set()
            self._status.set("Stopping …")

    # What the installation tells.

    def show_step(self, text: str) -> None:
        """Show a new step."""
        self._status.set(f"{text} …")
        self.show_line(f"== {text}")

    def show_line(self, text: str) -> None:
        """Show a line of uv's output."""
        self._log.configure(state="normal")
        self._log.insert("end", text + "\n")
        self._log.configure(state="disabled")
        self._log.see("end")

    def show_amount(self, done: int, total: int) -> None:
        """Show bytes on the disk, of about how many in all."""
        self._bar.configure(value=min(1.0, done / max(total, 1)))
        self._amount.set(f"{shown_bytes(done)} of about {shown_bytes(total)}")

    def ask(self, question: str) -> bool:
        """Ask for yes or no."""
        return bool(messagebox.askyesno("Medusa Chat", question, parent=self.root))

    # The work, in a thread of its own.

    def _install(self, *, is_repair: bool) -> None:
        if self._worker is not None:
            return
        self._attempt(self._keep_choices, lambda: self._start_worker(is_repair=is_repair))

    def _keep_choices(self) -> None:
        request.choose_settings(self._data, self._mirror.get().strip(), None)
        settings = replace(self._wanted.settings, mirror=self._mirror.get().strip())
        self._wanted = replace(
            request.with_settings(self._wanted, settings), with_model=self._with_model.get()
        )
        self._show_facts()

    def _start_worker(self, *, is_repair: bool) -> None:
        self._reporter = WindowReporter(self)
        self._status_label.configure(style="TLabel")
        self._go.configure(text=self._texts.go)
        self._set_busy(True)
        self._worker = threading.Thread(target=self._work, args=(is_repair,), daemon=True)
        self._worker.start()

    def _work(self, is_repair: bool) -> None:
        reporter = self._reporter
        try:
            install_version(self._data, self._wanted, reporter, is_repair=is_repair)
        except CancelledError:
            reporter.events.put(self._show_stopped)
        except SetupError as error:
            failure = error
            reporter.events.put(lambda: self._show_failure(failure))
        except Exception as error:  # noqa: BLE001 - else the window would wait for ever
            unforeseen = SetupError(f"That went wrong: {error!r}.", "Try again.")
            reporter.events.put(lambda: self._show_failure(unforeseen))
        else:
            reporter.events.put(self._finish)

    def _drain(self) -> None:
        self._reporter.deliver()
        with suppress(tk.TclError):  # a call may have closed the window
            self.root.after(DRAIN_EVERY_MS, self._drain)

    def _attempt(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        try:
            work()
        except SetupError as error:
            self._show_failure(error)
        else:
            then()

    def _finish(self) -> None:
        self.starts = True
        self.root.destroy()

    def _show_failure(self, error: SetupError) -> None:
        self._status_label.configure(style="Danger.TLabel")
        self._status.set("\n".join(part for part in (error.message, error.mend) if part))
        self._amount.set("")
        if self._worker is not None:  # more than a wrong choice
            self._go.configure(text="Try again")
            self._repair.grid()
        self._set_busy(False)

    def _show_stopped(self) -> None:
        self._worker = None
        self.root.destroy()

    def _set_busy(self, busy: bool) -> None:
        if not busy:
            self._worker = None
        for widget in (self._go, self._repair, *self._choices):
            widget.state(["disabled" if busy else "!disabled"])
        self._leave.configure(text="Cancel" if busy else self._texts.leave)
        self._bar.grid() if busy else self._bar.grid_remove()

    # What is on the page.

    def _first_wanted(self) -> Wanted:
        found = self._found
        if found.kind in (Kind.DAMAGED, Kind.FAILING) and found.current is not None:
            return request.installed(self._data, self._program, found.current)
        wanted = request.shipped(self._data, self._program)
        return replace(wanted, with_model=found.kind is Kind.FIRST)

    def _build(self) -> None:
        if self._program.icon.is_file():
            with suppress(tk.TclError):
                self.root.iconphoto(True, tk.PhotoImage(file=str(self._program.icon)))
        self.root.columnconfigure(0, weight=1)
        self.root.rowconfigure(0, weight=1)
        page = ttk.Frame(self.root, padding=24)
        page.grid(sticky="nsew")
        page.columnconfigure(0, weight=1)
        ttk.Label(page, text=self._texts.title, style="Title.TLabel").grid(sticky="w")
        ttk.Label(page, text=self._texts.explanation, wraplength=WIDTH).grid(
            sticky="w", pady=(6, 16)
        )
        self._build_facts(page)
        self._build_choices(page)
        self._build_progress(page)
        self._build_buttons(page)
        # Removed when all have their rows, so that they come back to them.
        self._bar.grid_remove()
        self._log.grid_remove()
        if self._found.kind is not Kind.FAILING or self._found.before is None:
            self._repair.grid_remove()

    def _build_facts(self, page: ttk.Frame) -> None:
        self._facts = {name: tk.StringVar() for name in NAMES}
        if self._found.kind is Kind.FAILING:
            return
        frame = ttk.Frame(page)
        frame.grid(sticky="ew")
        for row, (name, value) in enumerate(self._facts.items()):
            label = ttk.Label(frame, text=name, style="Muted.TLabel")
            label.grid(row=row, column=0, sticky="nw", padx=(0, 16), pady=2)
            label = ttk.Label(frame, textvariable=value, wraplength=WIDTH - 120)
            label.grid(row=row, column=1, sticky="w", pady=2)

    def _build_choices(self, page: ttk.Frame) -> None:
        self._with_model = tk.BooleanVar(value=self._wanted.with_model)
        self._mirror = tk.StringVar(value=self._wanted.settings.mirror)
        self._choices: list[ttk.Widget] = []
        if self._found.kind is Kind.FAILING:
            return
        if self._found.kind is Kind.FIRST:
            size = shown_bytes(FIRST_MODEL.download)
            box = ttk.Checkbutton(
                page,
                text=f"Also fetch {NAME} ({size}), a small model to begin with",
                variable=self._with_model,
                command=self._show_facts,
            )
            box.grid(sticky="w", pady=(12, 0))
            self._choices.append(box)
        frame = ttk.Frame(page)
        frame.grid(sticky="ew", pady=(14, 0))
        frame.columnconfigure(1, weight=1)
        ttk.Label(frame, text="Mirror", style="Muted.TLabel").grid(padx=(0, 16))
        entry = ttk.Entry(frame, textvariable=self._mirror)
        entry.grid(row=0, column=1, sticky="ew")
        browse = ttk.Button(frame, text="Folder…", command=self._browse)
        browse.grid(row=0, column=2, padx=(8, 0))
        hint = ttk.Label(frame, text=MIRROR_HINT, style="Muted.TLabel", wraplength=WIDTH - 70)
        hint.grid(row=1, column=1, columnspan=2, sticky="w", pady=(4, 0))
        self._choices += [entry, browse]

    def _build_progress(self, page: ttk.Frame) -> None:
        self._bar = ttk.Progressbar(page, maximum=1.0)
        self._bar.grid(sticky="ew", pady=(18, 0))
        frame = ttk.Frame(page)
        frame.grid(sticky="ew", pady=(8, 0))
        frame.columnconfigure(0, weight=1)
        self._status, self._amount = tk.StringVar(), tk.StringVar()
        self._status_label = ttk.Label(frame, textvariable=self._status, wraplength=WIDTH - 150)
        self._status_label.grid(sticky="w")
        amount = ttk.Label(frame, textvariable=self._amount, style="Muted.TLabel")
        amount.grid(row=0, column=1, sticky="ne")
        self._log = tk.Text(
            page,
            height=10,
            width=60,
            wrap="word",
            state="disabled",
            relief="flat",
            background=RAISED,
            foreground=TEXT,
            font="TkFixedFont",
            padx=8,
            pady=8,
        )
        self._log.grid(sticky="nsew", pady=(10, 0))
        if self._found.kind is Kind.FAILING:
            self.show_line(last_words(self._data))

    def _build_buttons(self, page: ttk.Frame) -> None:
        frame = ttk.Frame(page)
        frame.grid(sticky="ew", pady=(20, 0))
        frame.columnconfigure(2, weight=1)
        self._show_log = ttk.Button(frame, text="Show log", command=self._toggle_log)
        self._show_log.grid(row=0, column=0)
        self._repair = ttk.Button(frame, text="Repair", command=self.repair)
        self._repair.grid(row=0, column=1, padx=(8, 0))
        self._leave = ttk.Button(frame, text=self._texts.leave, command=self.leave)
        self._leave.grid(row=0, column=3)
        self._go = ttk.Button(
            frame, text=self._texts.go, command=self.begin, style="Primary.TButton"
        )
        self._go.grid(row=0, column=4, padx=(8, 0))
        self._go.focus_set()
        self._go.bind("<Return>", lambda _: self._go.invoke())

    def _show_facts(self) -> None:
        wanted = replace(self._wanted, with_model=self._with_model.get())
        facts = describe(self._data, wanted)
        for value, text in zip(self._facts.values(), facts, strict=True):
            value.set(text)

    def _browse(self) -> None:
        folder = filedialog.askdirectory(parent=self.root, title="Folder of packages")
        if folder:
            self._mirror.set(folder)

    def _toggle_log(self) -> None:
        is_shown = bool(self._log.grid_info())
        self._log.grid_remove() if is_shown else self._log.grid()
        self._show_log.configure(text="Show log" if is_shown else "Hide log")


class WindowReporter:
    """Reporter of one installation for the window.

    Attributes:
        events: calls that the window's thread has to make.
        cancel: set by the window when the user wants to end it.
    """

    def __init__(self, page: "SetupWindow") -> None:
        self.events: queue.Queue[Callable[[], None]] = queue.Queue()
        self.cancel = threading.Event()
        self._page = page

    def step(self, text: str) -> None:
        """Report a new step."""
        self.events.put(lambda: self._page.show_step(text))

    def line(self, text: str) -> None:
        """Report a line of uv's output, for the log."""
        self.events.put(lambda: self._page.show_line(text))

    def amount(self, done: int, total: int) -> None:
        """Report bytes on the disk, of about how many in all."""
        self.events.put(lambda: self._page.show_amount(done, total))

    def confirm(self, question: str) -> bool:
        """Ask in the window, and wait for the answer."""
        answers: queue.Queue[bool] = queue.Queue()
        self.events.put(lambda: answers.put(self._page.ask(question)))
        while not self.cancel.is_set():
            try:
                return answers.get(timeout=0.2)
            except queue.Empty:
                continue
        return False

    def is_cancelled(self) -> bool:
        """Return whether the user wants to cancel."""
        return self.cancel.is_set()

    def deliver(self) -> None:
        """Make the queued calls in the window's thread."""
        while not self.events.empty():
            self.events.get()()
