"""What the window says in each situation."""

from dataclasses import dataclass

from installer.bootstrap.situation import Kind, Situation


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of one situation.

    Attributes:
        title: the headline.
        explanation: a sentence or two.
        go: on the button that begins.
        leave: on the button that doesn't.
    """

    title: str
    explanation: str
    go: str
    leave: str


def texts_for(found: Situation) -> Texts:
    """The texts of a situation."""
    if found.kind is Kind.FIRST:
        return Texts(
            "Set up Medusa Chat",
            "Language models run on this computer. What they need is fetched once, for you alone; "
            "nothing else on this computer changes.",
            "Start",
            "Cancel",
        )
    if found.kind is Kind.NEWER:
        return Texts(
            f"Medusa Chat {found.shipped} is here",
            f"It is set up beside version {found.current}, which still runs if this fails. "
            "Conversations, models and settings stay as they are.",
            "Update",
            f"Use {found.current}",
        )
    if found.kind is Kind.FAILING and found.before is None:
        return Texts(
            f"Medusa Chat {found.current} failed to start twice",
            "A repair makes it afresh. Conversations, models and settings stay as they are.",
            "Repair",
            "Try again",
        )
    if found.kind is Kind.FAILING:
        return Texts(
            f"Medusa Chat {found.current} failed to start twice",
            f"Version {found.before} is still here. Conversations, models and settings stay as "
            "they are.",
            f"Use {found.before}",
            "Try again",
        )
    return Texts(
        "Medusa Chat needs a repair",
        f"Files of version {found.current} are missing. They are made afresh. Conversations, "
        "models and settings stay as they are.",
        "Repair",
        "Cancel",
    )
