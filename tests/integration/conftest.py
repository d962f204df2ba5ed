"""What is left out where changes are judged, which has a time limit."""

from support.effort import effort

collect_ignore = effort([], ["test_take_over.py", "test_go_back.py"])
