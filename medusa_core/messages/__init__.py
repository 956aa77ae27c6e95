"""Commands that go to the engine and events that come back.

Every message is frozen and made of str, bytes, int, float, bool, enums, tuples and paths alone, so
that it can be pickled and the worker may become a process. Messages belong to a session (one
conversation) and a request (one command); the sender chooses both names.
"""

from medusa_core.messages.commands import (
    Calibrate,
    Cancel,
    CloseSession,
    Command,
    Generate,
    LoadModel,
    Unload,
    Verify,
)
from medusa_core.messages.events import (
    BestNode,
    Calibrated,
    Event,
    Failed,
    GenerationDone,
    ModelLoaded,
    Progress,
    StepDone,
    Unloaded,
    Verified,
    VerifiedToken,
)
from medusa_core.messages.records import (
    GIVEN,
    TARGET,
    ChatMessage,
    Fit,
    GenerateSettings,
    HeadsShape,
    MemoryPlan,
    Message,
    Role,
    StepTimes,
    StopReason,
    TokenSource,
    WeightFormats,
)
from medusa_core.messages.traces import (
    NUM_ALTERNATIVES,
    Alternative,
    StepTrace,
    TraceNode,
    Verdict,
)

__all__ = [
    "GIVEN",
    "NUM_ALTERNATIVES",
    "TARGET",
    "Alternative",
    "BestNode",
    "Calibrate",
    "Calibrated",
    "Cancel",
    "ChatMessage",
    "CloseSession",
    "Command",
    "Event",
    "Failed",
    "Fit",
    "Generate",
    "GenerateSettings",
    "GenerationDone",
    "HeadsShape",
    "LoadModel",
    "MemoryPlan",
    "Message",
    "ModelLoaded",
    "Progress",
    "Role",
    "StepDone",
    "StepTimes",
    "StepTrace",
    "StopReason",
    "TokenSource",
    "TraceNode",
    "Unload",
    "Unloaded",
    "Verdict",
    "Verified",
    "VerifiedToken",
    "Verify",
    "WeightFormats",
]
