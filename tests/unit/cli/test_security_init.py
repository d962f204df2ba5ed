"""`sluice security init`."""

from pathlib import Path

from unit.cli.conftest import Cli

from sluice.security.accounts import read_accounts


def test_a_folder_is_made_once_and_anew_only_on_demand(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    made = cli("security", "init", folder, "--name", "gw.example.org", "--scope", "sales", "--json")
    assert made.document == {"folder": str(folder), "users": ["admin", "writer", "reader", "auto-scaler"]}
    accounts = (folder / "accounts").read_bytes()
    assert read_accounts(accounts)["writer"].acl.decide("prn::/scope:sales/stream:a").permission.name == "READ_UPDATE"
    again = cli("security", "init", folder)
    assert again.code == 1 and "has accounts, admin.password" in again.err and "--replace makes them anew" in again.err
    assert (folder / "accounts").read_bytes() == accounts
    assert cli("security", "init", folder, "--replace").code == 0
    assert (folder / "accounts").read_bytes() != accounts


def test_no_password_is_printed(cli: Cli, tmp_path: Path) -> None:
    shown = cli("security", "init", tmp_path / "made").out
    assert "admin.password" in shown
    secrets = [file.read_text() for file in (tmp_path / "made").glob("*.password")]
    assert [secret for secret in secrets if secret in shown] == []


def test_what_is_no_name_is_refused_with_a_sentence(cli: Cli, tmp_path: Path) -> None:
    refused = cli("security", "init", tmp_path / "made", "--name", "a b")
    assert refused.code == 1 and "'a b' is neither a host name nor an address" in refused.err
