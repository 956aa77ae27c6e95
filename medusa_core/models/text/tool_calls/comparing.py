"""Common prefixes and suffixes of two texts that don't split tags or words."""

from __future__ import annotations

import re

_TAG = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z_]{2,40}\]")


def num_common(text: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    num = 0
    for one, two in zip(text, other, strict=False):
        if one != two:
            break
        num += 1
    return num


def num_common_end(text: str, other: str) -> int:
    """Return the length of the common suffix of two texts that splits no tag."""
    num = num_common(text[::-1], other[::-1])
    for tag in _TAG.finditer(text):
        if tag.start() < len(text) - num < tag.end():
            num = len(text) - tag.end()
    for tag in _TAG.finditer(other):
        if tag.start() < len(other) - num < tag.end():
            num = len(other) - tag.end()
    return num


def num_common_before(text: str, first: int, second: int, max_first: int, max_second: int) -> int:
    """Return how many characters before two positions are equal, splitting no tag.

    Args:
        text: The text of both positions.
        first: One position.
        second: The other position.
        max_first: Most characters to compare before `first`.
        max_second: Most characters to compare before `second`.
    """
    num, most = 0, min(max_first, max_second)
    while num < most and text[first - num - 1] == text[second - num - 1]:
        num += 1
    return num_outside_tags(text, first, second, num)


def num_outside_tags(text: str, first: int, second: int, num: int) -> int:
    """Shorten a match of `num` characters before two positions so that it splits no tag."""
    for tag in _TAG.finditer(text):
        for place in (first, second):
            if tag.start() < place - num < tag.end():
                num = max(0, place - tag.end())
    return num


def tag_floor(text: str, num: int) -> int:
    """Shorten a prefix of `num` characters so that it doesn't end inside a tag."""
    inside = (tag.start() for tag in _TAG.finditer(text) if tag.start() < num < tag.end())
    return next(inside, num)


def header_length(text: str, other: str) -> int:
    """Return the length of the common prefix of two answers, in whole words and tags."""
    num = tag_floor(text, tag_floor(other, num_common(text, other)))
    while 0 < num < len(text) and text[num] not in "<[]{" and text[num - 1] not in " \n>]:":
        num -= 1
    return num


def num_turn_end(answer: str, other: str) -> int:
    """Return the length of the common suffix of two answers, trailing white space apart."""
    return num_common_end(answer.rstrip(), other.rstrip())
