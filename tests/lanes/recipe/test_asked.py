"""What the model is asked, to learn from its answers."""

from medusa_core.messages import Role
from recipe.asked import asked_in
from recipe.corpus import Document, Segment


def documents() -> list[Document]:
    spoken = [
        Document(
            "talk", tuple(Segment(("user", "assistant")[i % 2], f"{d} {i}") for i in range(12))
        )
        for d in range(30)
    ]
    return [*spoken, *spoken, Document("book", (Segment("text", "once"),))]


def test_prompts_are_first_questions_without_duplicates() -> None:
    requested = asked_in(documents(), 20, 7, most=0.5)
    assert len(requested) == len(set(requested)) == 10  # of its only source half
    assert requested == asked_in(documents(), 20, 7, most=0.5)
    assert {len(messages) for messages in requested} <= {1, 3, 5, 7}
    assert all(messages[-1].role is Role.USER for messages in requested)
    found = asked_in(documents(), 10_000, 7, most=1.0)
    assert 30 <= len(found) <= 60
    assert {len(messages) for messages in found} == {1, 3, 5, 7}
