"""How a query starts."""

from unittest.mock import MagicMock

import pytest

from retention_spark.query import plans, start_query
from retention_spark.settings import SparkSettings
from sluice.engine.ports import NotLeaderError


def test_an_instance_that_does_not_lead_any_more_removes_no_checkpoints() -> None:
    settings, session, leadership = SparkSettings(instance="t", partitions=4), MagicMock(), MagicMock(term=1)
    leadership.positions.return_value = {0: 7}
    leadership.commit.side_effect = NotLeaderError("another instance leads by now")
    scale = plans(settings)[0]
    with pytest.raises(NotLeaderError):
        start_query(session, scale, settings, "retention-spark/t", MagicMock(), leadership)
    leadership.commit.assert_called_once_with(1, scale.topic.name, {0: 7, 1: 0, 2: 0, 3: 0})
    assert session.mock_calls == []
