"""Blocks of pages that are made from the catalogue."""

import json
import re

import pytest

from sluice.catalog.pages import UnknownBlockError, refreshed
from sluice.kafka.topics import TOPICS


def block(name: str, text: str = "OUTDATED\n") -> str:
    return f"before\n<!-- catalog: {name} -->\n{text}<!-- end -->\nafter\n"


def test_a_page_without_blocks_stays() -> None:
    assert refreshed("# Title\n\ntext <!-- a comment -->\n") == "# Title\n\ntext <!-- a comment -->\n"


@pytest.mark.parametrize("text", ["", "OUTDATED\n", "OUTDATED\nand more\n"])
def test_what_stood_in_a_block_is_replaced_and_the_rest_stays(text: str) -> None:
    page = refreshed(block("topics", text))
    assert page.startswith("before\n<!-- catalog: topics -->\n- `sluice.requests.streams`: ")
    assert page.endswith("no value\n<!-- end -->\nafter\n")
    assert "OUTDATED" not in page
    assert refreshed(page) == page


def test_the_list_has_an_item_for_each_topic() -> None:
    page = " ".join(refreshed(block("topics")).split())
    for topic in TOPICS:
        (item,) = re.findall(rf"- `{topic.name}`: .*?; kept ", page)
        assert all(service in item for service in (*topic.written_by, *topic.read_by))
    assert "; kept until it is behind" in page and "; kept 30 days" in page and "; kept 1 day; 1 partition" in page


def test_a_record_is_shown_with_key_type_and_value() -> None:
    page = refreshed(block("record sluice.commit CommitTransaction"))
    assert "key: shop/orders\nce_type: CommitTransaction\n" in page
    value = json.loads(page.partition("```json\n")[2].partition("\n```")[0])
    assert value["command"]["type"] == "CommitTransaction"
    assert max(map(len, page.splitlines())) <= 120


@pytest.mark.parametrize("name", ["nothing", "record sluice.commit CreateScope", "record sluice.commit"])
def test_what_is_not_in_the_catalogue_is_said(name: str) -> None:
    with pytest.raises(UnknownBlockError):
        refreshed(block(name))
