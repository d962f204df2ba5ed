"""The pages that people read: what they link to is there."""

import re
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in CLONE.rglob("*.md") if not page.relative_to(CLONE).parts[0].startswith("."))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CLONE)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for path, anchor in re.findall(r"\]\((?!https?:)([^)\s#]*)(?:#([\w-]+))?\)", text):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"
