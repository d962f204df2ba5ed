"""docs/differences.md against the cases: every difference on purpose is there, for the reason its case gives."""

import re
from pathlib import Path

from conformance.table import CASES

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"


def items() -> list[str]:
    """The items of the page's lists, each on one line."""
    return [" ".join(item.split()) for item in re.findall(r"^- (.*?)(?=^- |^#|\n\n)", PAGE.read_text(), re.S | re.M)]


def named_in(item: str) -> set[str]:
    """The cases that an item names at its end."""
    cases = re.search(r"\(((?:`[a-z_]+-\w+`(?:, )?)+)\)$", item)
    return set(re.findall(r"`([a-z_]+-\w+)`", cases[1])) if cases else set()


def reasons() -> set[tuple[str, str]]:
    """(case, reason) for whatever differs, or cannot be tried on the original."""
    differing = {(case.name, step.why) for case in CASES for step in case.differences}
    return differing | {(case.name, case.peer_not_called) for case in CASES if case.peer_not_called}


def test_every_difference_is_listed_with_its_reason() -> None:
    listed = {name: item for item in items() for name in named_in(item)}
    missing = [(name, why) for name, why in reasons() if why.rstrip(".") not in listed.get(name, "")]
    assert missing == [], "not in docs/differences.md, or with another reason"


def test_every_case_is_listed_once() -> None:
    listed = [name for item in items() for name in named_in(item)]
    assert sorted(listed) == sorted({name for name, _ in reasons()})


def test_every_item_says_what_the_original_and_sluice_do() -> None:
    found = items()
    assert len(found) > 40
    for item in found:
        assert re.fullmatch(r"\*\*.+?\*\*\. Original: .+\. Sluice: .+\.(?: \(.+\))?", item), item
