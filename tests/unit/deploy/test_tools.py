"""Where the programs of `make k8s-check` come from."""

from pathlib import Path

import pytest

from sluice_k8s import tools


def test_what_setup_envtest_has_fetched_is_neither_built_nor_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kube-apiserver", "etcd"):
        (tmp_path / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    for name in ("kube-apiserver", "etcd"):
        assert tools.of_cluster(name, tmp_path / "home", print) == [str(tmp_path / name)]
    with pytest.raises(tools.ToolError, match="Go"):
        tools.built(tools.KUSTOMIZE, tmp_path / "home", print)
