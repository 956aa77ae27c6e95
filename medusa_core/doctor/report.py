"""Compose the report for support: versions, checks and recent errors."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from medusa_core.doctor.check import Check
from medusa_core.loading.state import ModelStatus
from medusa_core.messages import Calibrated, MemoryPlan
from medusa_core.system.components import component_versions

_MAX_LINES = 120
_MAX_BYTES = 400_000  # of the end of a log
# First line of a log record; other lines continue the record before.
_BEGIN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?P<level>[A-Z]+) ")
_REPORTED = {"WARNING", "ERROR", "CRITICAL"}
# Messages of chat templates may quote the conversation.
_QUOTING = "TemplateError"
_TOKENS = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|xox[bp]-)[A-Za-z0-9_\-]{6,}"
    r"|(?i:bearer|token|authorization|password|secret|api[_-]?key)\b[\"']?\s*[:=]?\s*"
    r"[\"']?(?!is\b|of\b|for\b)[A-Za-z0-9_\-.~+/]{16,}"
)
_URL_USER = re.compile(r"(?<=://)[^/\s:@]+(?::[^/\s@]*)?@")
_HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s\"':]+")


def compose_report(
    checks: Iterable[Check], model: str, status: ModelStatus, logs: Mapping[str, Path]
) -> str:
    """Return the report, redacted and without conversations.

    Args:
        checks: Results of all checks.
        model: Name of the model.
        status: Status of the model.
        logs: Log files by title, of which recent errors are included.
    """
    parts = [
        _section(
            "Versions",
            [f"{name}: {version or '–'}" for name, version in component_versions().items()],
        ),
        _section("Checks", [_line(check) for check in checks]),
        _section("Model", _model_lines(model, status)),
    ]
    parts += [_section(title, last_errors(path)) for title, path in logs.items()]
    return redact("\n".join(parts))


def last_errors(path: Path) -> list[str]:
    """Return the last lines of a log that are warnings or errors."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _MAX_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    report_lines: list[str] = []
    is_reported = not any(_BEGIN.match(line) for line in lines)  # a crash dump has no records
    for line in lines:
        if (begin := _BEGIN.match(line)) is not None:
            is_reported = begin["level"] in _REPORTED
        before, quoting, _ = line.partition(_QUOTING)
        if is_reported:
            report_lines.append(before + quoting)
        if quoting:  # the lines that follow may be more of its message
            is_reported = False
    return report_lines[-_MAX_LINES:]


def _section(title: str, lines: Iterable[str]) -> str:
    """Return a section of the report."""
    return "\n".join((f"## {title}", *(lines or ["–"]), ""))


def _line(check: Check) -> str:
    """Format the result of a check for the report."""
    line_text = f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.message}"
    return f"{line_text} {check.hint}".rstrip()


def _model_lines(name: str, status: ModelStatus) -> list[str]:
    """Describe the model's state."""
    lines = [f"{name}: {status.phase.value}"]
    if (failed := status.failed) is not None:
        quotes = failed.kind == _QUOTING
        lines.append(failed.kind if quotes else f"{failed.kind}: {failed.message} {failed.hint}")
    if (loaded := status.loaded) is not None and loaded.is_remote:
        lines.append("It runs on another machine.")
    elif loaded is not None:
        lines.append(
            f"{loaded.num_parameters:,} parameters, {loaded.num_heads} heads, {loaded.quant}, "
            f"{loaded.dtype} on {loaded.device}, context {loaded.context_tokens:,}, "
            f"loaded in {loaded.load_s:.1f} s {loaded.device_note}"
        )
        lines += _plan_lines(loaded.plan)
    if status.calibrated is not None:
        lines.append(_calibration_line(status.calibrated))
    return lines


def _plan_lines(plan: MemoryPlan) -> list[str]:
    """Return the memory plan in MiB."""
    mib = 1 << 20
    parts = {
        "weights": plan.weights_bytes,
        "heads": plan.heads_bytes,
        "KV": plan.kv_bytes,
        "scratch": plan.scratch_bytes,
        "other programs": plan.other_bytes,
        "embedding model": plan.reserved_bytes,
        "free": plan.free_bytes,
        "total": plan.total_bytes,
    }
    lines = [f"plan, MiB: {', '.join(f'{name} {size // mib}' for name, size in parts.items())}"]
    if (cpu := plan.cpu_parts) is not None:
        lines.append(f"{cpu.summary}{cpu.displaced}, {cpu.nbytes // mib} MiB in memory: {cpu.why}")
    return lines


def _calibration_line(calibrated: Calibrated) -> str:
    """Return the measured seconds of steps."""
    steps = ", ".join(f"{rows} rows {seconds * 1e3:.2f} ms" for rows, seconds in calibrated.step_s)
    return f"steps: {steps}; plain {calibrated.plain_step_s * 1e3:.2f} ms"


def redact(text: str) -> str:
    """Return the text without tokens, home folders and the user's name."""
    for folder in _own_homes():
        text = text.replace(folder, "~")
    text = _HOMES.sub("~", text)
    text = _URL_USER.sub("***@", text)
    text = _TOKENS.sub("***", text)
    name = _user_name()
    return re.sub(rf"\b{re.escape(name)}\b", "***", text) if name else text


def _own_homes() -> list[str]:
    """Return the user's home folders, the longest first."""
    homes = {os.environ.get("HOME", ""), str(Path.home())} - {"", "/"}
    return sorted(homes, key=len, reverse=True)


def _user_name() -> str:
    """Return the user's name; empty if it is generic or unknown."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
    return "" if name in ("root", "user", "admin") or len(name) < 3 else name
