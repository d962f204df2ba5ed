"""Blocks of pages that are made from the catalogue."""

import pytest
from support.documents import DOCS

from sluice.catalog.pages import UnknownBlockError, refreshed
from sluice.kafka.topics import TOPICS


def block(name: str, text: str = "OUTDATED\n") -> str:
    return f"before\n<!-- catalog: {name} -->\n{text}<!-- end -->\nafter\n"


def test_a_page_without_blocks_stays() -> None:
    assert refreshed("# Title\n\ntext <!-- a comment -->\n") == "# Title\n\ntext <!-- a comment -->\n"


@pytest.mark.parametrize("text", ["", "OUTDATED\n", "OUTDATED\nand more\n"])
def test_what_stood_in_a_block_is_replaced_and_the_rest_stays(text: str) -> None:
    page = refreshed(block("topics", text))
    assert page.startswith("before\n<!-- catalog: topics -->\n| topic |")
    assert page.endswith("|\n<!-- end -->\nafter\n")
    assert "OUTDATED" not in page
    assert refreshed(page) == page


def test_the_table_has_a_row_for_each_topic() -> None:
    page = refreshed(block("topics"))
    for topic in TOPICS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{topic.name}` |")]
        assert all(service in row for service in (*topic.written_by, *topic.read_by))
    assert "| until it is behind" in page and "| 30 days |" in page and "| 1 day |" in page


def test_a_record_is_shown_with_key_headers_and_value() -> None:
    page = refreshed(block("record sluice.commit CommitTransaction"))
    assert "key: shop/orders\n" in page and "ce_type: CommitTransaction\n" in page
    assert '    "type": "CommitTransaction",\n' in page


@pytest.mark.parametrize("name", ["nothing", "record sluice.commit CreateScope", "record sluice.commit"])
def test_what_is_not_in_the_catalogue_is_said(name: str) -> None:
    with pytest.raises(UnknownBlockError):
        refreshed(block(name))


def test_the_page_of_topics_shows_a_record_of_each() -> None:
    page = (DOCS / "topics.md").read_text()
    for topic in TOPICS:
        assert f"<!-- catalog: record {topic.name} " in page
