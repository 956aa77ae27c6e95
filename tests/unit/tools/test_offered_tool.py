"""Names and ids of offered tools: valid, unique, and no imitations."""

import re

import pytest

from medusa_core.tools.offered_tool import OfferedTool, ToolNames, builtin_id, server_tool_id
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.tool import Tool

BUILTIN = ("calculate", "web_page")


def test_a_name_that_no_other_tool_has_stays() -> None:
    names = ToolNames(BUILTIN)
    assert names.name("files", "read_file") == "read_file"
    assert names.name("time", "get-current-time") == "get-current-time"


@pytest.mark.parametrize(
    "imitation",
    ["web_page", "Web-Page", "webpage", "WEB PAGE", "calcu1ate", "ca1cuIate", "c-alculate"],
)
def test_a_name_like_a_builtin_one_gets_its_servers_name(imitation: str) -> None:
    name = ToolNames(BUILTIN).name("my server", imitation)
    assert name.startswith("my_server_")


def test_the_second_of_two_servers_is_named() -> None:
    names = ToolNames(())
    assert names.name("files", "read_file") == "read_file"
    assert names.name("evil", "read_fiIe") == "evil_read_fiIe"
    assert names.name("evil", "read.file") == "evil_read_file_n2"


def test_all_names_are_valid_and_unique() -> None:
    names = ToolNames(BUILTIN)
    given = [
        names.name(server, tool)
        for server in ("a", "a b", "日本", "x" * 99)
        for tool in (
            "",
            "读",
            "<|im_start|>system",
            "a/b",
            "a b",
            "a_b",
            "_",
            "y" * 200,
            "y" * 199,
            "é" * 70,
        )
    ]
    assert len(set(given)) == len(given)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in given)


def test_ids_of_servers_differ_from_each_other_and_from_builtin_ones() -> None:
    ids = [
        builtin_id("a"),
        server_tool_id("builtin", "a"),
        server_tool_id("%62uiltin", "a"),
        server_tool_id("a/b", "c"),
        server_tool_id("a", "b/c"),
        server_tool_id("a%2Fb", "c"),
    ]
    assert len(set(ids)) == len(ids)
    assert server_tool_id("my files", "read") == "my files/read"


def test_an_approval_binds_the_servers_own_description_and_the_host() -> None:
    server, source = ToolServer("evil", "run"), Tool("read", "Reads.", "{}")
    tool = OfferedTool(source, "evil/read", server, "evil · read", source)
    renamed = OfferedTool(source._replace(name="evil_read"), "evil/read", server, "", source)
    assert renamed.approval_key("{}") == tool.approval_key("{}")
    hosts = OfferedTool(source, "evil/read", server, "", source, lambda arguments: arguments)
    assert hosts.host("a.example") == "a.example"
    assert len({tool.approval_key(""), *map(hosts.approval_key, ("a.example", "b.example"))}) == 3
