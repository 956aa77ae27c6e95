"""What two texts have in common, in whole tags and words."""

from __future__ import annotations

import re

_TAG = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z_]{2,40}\]")


def num_common(text: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    num = 0
    for one, two in zip(text, other, strict=False):
        if one != two:
            break
        num += 1
    return num


def num_common_end(text: str, other: str) -> int:
    """How many characters two texts have in common at their ends, but for parts of tags."""
    num = num_common(text[::-1], other[::-1])
    for tag in _TAG.finditer(text):
        if tag.start() < len(text) - num < tag.end():
            num = len(text) - tag.end()
    for tag in _TAG.finditer(other):
        if tag.start() < len(other) - num < tag.end():
            num = len(other) - tag.end()
    return num


def num_common_before(text: str, here: int, there: int, most_here: int, most_there: int) -> int:
    """How many characters before two places are the same, but for parts of tags."""
    num, most = 0, min(most_here, most_there)
    while num < most and text[here - num - 1] == text[there - num - 1]:
        num += 1
    return num_outside_tags(text, here, there, num)


def num_outside_tags(text: str, here: int, there: int, num: int) -> int:
    """The same number, less what is the end of a tag that begins earlier."""
    for tag in _TAG.finditer(text):
        for place in (here, there):
            if tag.start() < place - num < tag.end():
                num = max(0, place - tag.end())
    return num


def tag_floor(text: str, num: int) -> int:
    """A number of characters, less those that are the beginning of a tag."""
    inside = (tag.start() for tag in _TAG.finditer(text) if tag.start() < num < tag.end())
    return next(inside, num)


def header_length(text: str, other: str) -> int:
    """The length of what two answers begin with, without the beginning of a word or tag."""
    num = tag_floor(text, tag_floor(other, num_common(text, other)))
    while 0 < num < len(text) and text[num] not in "<[]{" and text[num - 1] not in " \n>]:":
        num -= 1
    return num


def num_turn_end(answer: str, other: str) -> int:
    """The length of what ends both answers; white space after it isn't counted."""
    return num_common_end(answer.rstrip(), other.rstrip())
