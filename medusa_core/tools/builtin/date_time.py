"""Date and time, here or in another time zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from medusa_core.tools.builtin_tool import BuiltinTool

_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "zone": {
            "type": "string",
            "description": "IANA time zone such as Europe/Zurich; the user's own by default.",
        }
    },
    "additionalProperties": False,
}


def describe_time(
    arguments: Mapping[str, Any], now: Callable[[], datetime] = lambda: datetime.now().astimezone()
) -> str:
    """Return weekday, date, time and offset.

    Args:
        arguments: Arguments of the call.
        now: Returns the present time with its zone.

    Raises:
        ValueError: There is no such time zone.
    """
    time, zone = now(), arguments.get("zone") or ""
    if zone:
        try:
            time = time.astimezone(ZoneInfo(zone))
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(
                "there is no such time zone: use an IANA name such as Europe/Zurich or UTC"
            ) from error
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return f"{days[time.weekday()]}, {time.isoformat(timespec='seconds')} ({zone or time.tzname()})"


SPEC = BuiltinTool(
    "date_time",
    "Date and time",
    "Tells the present date, time and weekday, in the user's time zone or another one.",
    _SCHEMA,
    lambda arguments, _: describe_time(arguments),
)
