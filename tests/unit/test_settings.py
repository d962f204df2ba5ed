"""Settings with which a service could run but do nothing, or not end its start with a sentence, are refused."""

import pytest
from pydantic import ValidationError

from api_gateway.settings import GatewaySettings
from sluice.settings import ServiceSettings
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (TxnSettings, "batch", 0),
        (TxnSettings, "max_steps", 0),
        (TxnSettings, "tick_s", 0),
        (TxnSettings, "grace_s", -1),
        (TxnSettings, "max_prepared_in_all", -1),
        (WorkflowSettings, "max_steps", 0),
        (WorkflowSettings, "watermark_interval_s", 0),
        (WorkflowSettings, "statistics_s", 0),
        (GatewaySettings, "max_pending", 0),
        (GatewaySettings, "grpc_port", 70_000),
        (ServiceSettings, "kafka_replication", 0),
        (ServiceSettings, "log_level", "loud"),
    ],
)
def test_what_cannot_work_is_refused(
    kind: type[ServiceSettings], name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"SLUICE_{name.upper()}", str(value))
    with pytest.raises(ValidationError, match=name):
        kind()


def test_a_level_of_logs_may_be_written_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_LOG_LEVEL", "Warning")
    assert ServiceSettings().log_level == "Warning"
