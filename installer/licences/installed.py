"""Packages of the environment that people get, and what their metadata says of them."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import Distribution, MetadataPathFinder, PackageMetadata
from pathlib import Path

from installer.errors import SetupError
from installer.layout import Layout
from installer.licences.document import TABLE, Part, known_parts, parts_of

_SPDX = re.compile(r"(Apache|BSD|LGPL|GPL|MPL|PSF)-[0-9][A-Za-z0-9.-]*|MIT|ISC|AND|OR")
_NAME = re.compile(r"[A-Za-z0-9._-]*")
_MOST_NAMES = 3


def read_requirements(layout: Layout, *, with_tests: bool) -> list[str]:
    """Return the requirements of the application with its server and tools, and of its tests."""
    project = tomllib.loads(layout.pyproject.read_text(encoding="utf-8"))["project"]
    extras = ("server", "tools", "test") if with_tests else ("server", "tools")
    optional = (project["optional-dependencies"][extra] for extra in extras)
    return [str(line) for lines in (project["dependencies"], *optional) for line in lines]


def name_of(requirement: str) -> str:
    """Return the name at the start of a requirement."""
    return str(_NAME.findall(requirement)[0])


def pins(layout: Layout) -> dict[str, str]:
    """Return versions by name, as constraints.txt pins them."""
    lines = layout.constraints.read_text(encoding="utf-8").splitlines()
    pinned = (line.split("#")[0].strip().partition("==") for line in lines)
    return {normal(name): version for name, _, version in pinned if version}


def installed_parts(layout: Layout) -> tuple[Part, ...]:
    """Return the packages of an installation with server and tools, by name.

    Raises:
        SetupError: one isn't in the environment, or says nothing of its licence.
    """
    pinned, environment = pins(layout), layout.environment.site_packages
    parts, elsewhere = [], {part.name: part for part in parts_of("elsewhere")}
    for name in sorted(closure(layout)):
        found = distribution(name, environment)
        if found is None and name in elsewhere:
            parts.append(replace(elsewhere[name], version=pinned[name]))
            continue
        if found is None:
            raise SetupError(f"{name} isn't in .venv.", "Run python3 installer test first.")
        parts.append(part_of(name, found.metadata, pinned[name]))
    return tuple(parts)


def closure(layout: Layout) -> set[str]:
    """Return the names of all pinned packages that the program needs on any system."""
    pinned, environment = pins(layout), layout.environment.site_packages
    needed: set[str] = set()
    open_ones = [normal(name_of(one)) for one in read_requirements(layout, with_tests=False)]
    while open_ones:
        name = open_ones.pop()
        # Libraries that torch's build for a card brings aren't pinned; the document names them.
        if name in needed or name not in pinned:
            continue
        needed.add(name)
        if (found := distribution(name, environment)) is not None:
            open_ones += [normal(name_of(one)) for one in _needs(found)]
    return needed


def part_of(name: str, about: PackageMetadata, version: str) -> Part:
    """Return a part from a package's metadata.

    Raises:
        SetupError: it says nothing of its licence.
    """
    licence = _licence(name, about)
    if not licence:
        raise SetupError(
            f"{name} {version} names no licence that is known here.",
            f"Read it in its text, and add it to {TABLE.name}.",
        )
    files = about.get_all("License-File") or []
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    published = f"{known_parts()['published_at']}{licence.split()[0]}"
    text = f"{folder}: {files[0]}" if files else published
    return Part(name, licence, _authors(name, about), text, version)


def distribution(name: str, environment: Path) -> Distribution | None:
    """Return a package of an environment; None if it is missing."""
    context = MetadataPathFinder.Context(name=name, path=[str(environment)])
    return next(iter(MetadataPathFinder.find_distributions(context)), None)


def normal(name: str) -> str:
    """Return a normalized name for comparisons."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _needs(found: Distribution) -> Iterable[str]:
    """Return requirements on any system, without those of extras."""
    return (one for one in found.requires or () if not re.search(r"\bextra\s*==", one))


def _licence(name: str, about: PackageMetadata) -> str:
    """Return an SPDX expression; empty if it is unknown."""
    known = known_parts()
    if expression := known["read_in_text"].get(name) or _first(about, "License-Expression"):
        return str(expression)
    marks = [mark.rpartition(" :: ")[2] for mark in about.get_all("Classifier") or []]
    for words in (_first(about, "License"), *marks):
        said = str(known["by_words"].get(words, words))
        if said and all(_SPDX.fullmatch(word) for word in said.split()):
            return said
    return ""


def _authors(name: str, about: PackageMetadata) -> str:
    fields = ("Author", "Author-email", "Maintainer", "Maintainer-email")
    said = next(filter(None, (_first(about, field) for field in fields)), "")
    names = [re.sub(r"\s*<[^>]*>", "", one).strip(' "') for one in re.split(r",(?![^<]*>)", said)]
    names = [re.sub(r"\(http.*", "", one).strip() for one in names if one and "@" not in one]
    if not names:
        return f"The {name} authors"
    more = " and others" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _first(about: PackageMetadata, field: str) -> str:
    return str((about.get_all(field) or [""])[0])
