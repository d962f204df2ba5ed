"""The archive for a bug report: complete where the system is well, there where it is not, and never with a secret."""

import json
import tarfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli
from unit.cli.shown import LETTER, WORKFLOW, items

from sluice_cli.diagnosis import archive
from sluice_cli.diagnosis.secrets import Redactor, is_secret, secrets_in

PLANTED = [f"hunter{number}-x" for number in range(9)]
"""Secrets, each planted somewhere else."""
READY = {"ready": False, "not_ready": {"journal": "redis://me:" + PLANTED[0] + "@h:1 is away"}}
MEMBER = {"service": "txn-manager", "instance": "c", "endpoints": {"rest": "h:1"}, "since": 1, "lastSeen": 2}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local system's state folder, and the environment of its user, with secrets."""
    conf = tmp_path / "kafka.json"
    conf.write_text(json.dumps({"sasl.password": PLANTED[1], "client.id": "me"}))
    for name, value in {
        "SLUICE_REDIS_URL": f"redis://:{PLANTED[2]}@h:1/0",
        "SLUICE_KAFKA_CONF": json.dumps({"sasl.password": PLANTED[3], "client.id": "me"}),
        "SLUICE_SPARK_CONF": str(conf),
        "SLUICE_REGISTRY_TOKEN": PLANTED[4],
        "UNRELATED": PLANTED[5],
    }.items():
        monkeypatch.setenv(name, value)
    logs = tmp_path / "state" / "logs"
    logs.mkdir(parents=True)
    text = f"bare {PLANTED[1]} {PLANTED[2]} {PLANTED[3]} {PLANTED[4]}\nsasl.password={PLANTED[6]}\n"
    (logs / "api-gateway-1.log").write_text(f'{text}{{"Authorization": "Bearer {PLANTED[7]}"}}\nplain words stay\n')
    return tmp_path / "state"


@pytest.fixture
def system(cli: Cli) -> Cli:
    cli.answers |= {
        "GET /readyz": httpx.Response(503, json=READY),
        "GET /members": items(MEMBER),
        "GET /containers": {"items": [], "stores": [], "assignedAt": 0},
        "GET /workflows": items({**WORKFLOW, "aggregate": "stream:demo/orders", "canCancel": False}),
        "GET /dead-letters": items({**LETTER, "value": PLANTED[8]}, LETTER),
    }
    return cli


def unpacked(file: Path) -> dict[str, str]:
    with tarfile.open(file) as opened:
        entries = {entry.name.partition("/")[2]: opened.extractfile(entry) for entry in opened.getmembers()}
        return {name: entry.read().decode() for name, entry in entries.items() if entry is not None}


def test_everything_is_in_it_and_no_secret(system: Cli, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.tar.gz"
    said = system("diagnose", "--output", file, "--home", home)
    assert said.code == 0 and str(file) in said.out, said.err
    found = unpacked(file)
    assert set(found) == {
        "versions.json", "settings.json", "topics.json", "readiness.json", "members.json", "containers.json",
        "workflows.json", "dead-letters.json", "problems.json", "logs/api-gateway-1.log",
    }  # fmt: skip
    whole = "\n".join(found.values())
    assert [secret for secret in PLANTED if secret in whole] == []
    assert file.stat().st_mode & 0o777 == 0o600
    documents: dict[str, Any] = {name: json.loads(text) for name, text in found.items() if name.endswith(".json")}
    assert documents["problems.json"] == {}
    assert documents["dead-letters.json"] == {"count": 2, "byTopic": {"sluice.commit": 2}}
    assert documents["readiness.json"]["status"] == 503
    assert documents["workflows.json"][0]["lastError"] == "ContainerNotFound"
    assert documents["settings.json"]["addresses"]["api"] == {"value": "http://127.0.0.1:10080", "source": "default"}
    assert '"client.id": "me"' in documents["settings.json"]["environment"]["SLUICE_KAFKA_CONF"]
    assert "UNRELATED" not in whole and "plain words stay" in whole
    assert "sluice-streams-cli" in documents["versions.json"]["distributions"]
    assert {"topic", "records", "partitions"} <= documents["topics.json"][0].keys()


def test_what_is_away_is_named_and_the_rest_is_written(
    system: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    system.answers["GET /readyz"] = refuse
    monkeypatch.chdir(tmp_path)
    found = system("diagnose", "--home", home, "--json").document
    assert found["problems"].keys() == {"readiness", "members", "containers", "workflows", "dead-letters"}
    assert len(system.calls) == 1, "what cannot be reached is not tried again and again"
    assert "topics.json" in found["files"] and "members" in unpacked(tmp_path / found["file"])["problems.json"]


def test_of_a_long_log_the_end_is_taken(
    system: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LOG_BYTES", 17)
    assert system("diagnose", "--output", tmp_path / "a.tgz", "--home", home).code == 0
    assert unpacked(tmp_path / "a.tgz")["logs/api-gateway-1.log"] == "plain words stay\n"


def test_a_file_that_is_there_stays(system: Cli, home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    found = system("diagnose", "--output", tmp_path / "mine", "--home", home)
    assert found.code == 2 and "--output" in found.err and (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("redis://:pw123@h:1/0", "redis://***@h:1/0"),
        ("sasl.password=abc, acks=all", "sasl.password=***, acks=all"),
        ('{"sasl.password": "a\\"b c", "acks": 1}', '{"sasl.password": ***, "acks": 1}'),
        ('username="u" password="p w";', 'username="u" password=***;'),
        ("Authorization: Bearer abc.def next", "Authorization: *** next"),
        ("no route to http://host:1/path", "no route to http://host:1/path"),
        ("the key of demo/orders", "the key of demo/orders"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, hidden: str) -> None:
    assert Redactor(()).text(text) == hidden


def test_a_secret_is_hidden_in_every_form_in_which_it_is_written() -> None:
    redactor = Redactor(
        secrets_in({"SLUICE_X_PASSWORD": 'a"b\\c', "SLUICE_URL": "redis://u:p%40ss@h", "A_SECRET": "true"})
    )
    assert redactor.text(json.dumps({"x": 'a"b\\c'})) == '{"x": "***"}'
    assert redactor.text("p@ss and p%40ss, true") == "*** and ***, true"


def test_names_of_secrets_are_known() -> None:
    for name in ("sasl.password", "SLUICE_API_TOKEN", "fs.s3a.secret.key", "fs.s3a.access.key", "ssl.key.pem"):
        assert is_secret(name), name
    for name in ("SLUICE_KAFKA_BOOTSTRAP", "key", "primaryKeyLength", "keyRanges"):
        assert not is_secret(name), name
