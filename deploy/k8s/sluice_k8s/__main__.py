"""`python -m sluice_k8s render` keeps what kustomize makes; `check` looks at it in every way there is.

Without Go to build the API server with, `check` fails: a check that leaves out a part says nothing. `up` and `down` are
about a node on this machine.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from sluice_k8s import chart, kafka_users, manifests, node, rules, schemas, tools
from sluice_k8s.api_server import ApiServerError, api_server
from sluice_k8s.dry_run import DryRun, DryRunError

HOME = Path(os.environ.get("SLUICE_HOME") or manifests.FOLDER.parents[1] / ".sluice").absolute()


def say(line: str) -> None:
    """Show progress."""
    print(f"k8s: {line}", flush=True)


def render() -> list[str]:
    """Render all overlays anew, and before them what they take from the code."""
    kafka_users.PATH.write_text(kafka_users.text())
    kustomize = tools.built(tools.KUSTOMIZE, HOME, say)
    for overlay in manifests.OVERLAYS:
        manifests.keep(overlay, manifests.render(kustomize, overlay))
        say(f"{overlay}: {len(manifests.objects(manifests.kept(overlay)))} objects")
    chart.keep(kustomize)
    say(f"chart: {chart.CHART.relative_to(manifests.FOLDER.parents[1])}")
    return []


def check() -> list[str]:
    """Return every problem of every overlay."""
    kustomize = tools.built(tools.KUSTOMIZE, HOME, say)
    helm = tools.built(tools.HELM, HOME, say)
    found: list[str] = []
    if not chart.is_current():
        found.append("the chart that is kept is another one: run `make k8s-render`")
    etcd, kube_apiserver = (tools.of_cluster(name, HOME, say) for name in ("etcd", "kube-apiserver"))
    rendered = {}
    for overlay in manifests.CHECKED:
        text = manifests.render(kustomize, overlay)
        if overlay in manifests.OVERLAYS and text != manifests.kept(overlay):
            found.append(f"{overlay}: the rendering that is kept is another one: run `make k8s-render`")
        rendered[overlay] = manifests.objects(text)
        problems = [p for manifest in rendered[overlay] for p in schemas.problems(manifest)]
        problems += rules.problems(rendered[overlay])
        found += [f"{overlay}: {problem}" for problem in problems]
        elsewhere = manifests.objects(manifests.render_in("elsewhere", kustomize, overlay))
        found += [f"{overlay}, in another namespace: {problem}" for problem in rules.left_behind(elsewhere)]
        say(f"{overlay}: {len(rendered[overlay])} objects, {len(problems)} problems by schemas and rules")
    for components in ((), *((name,) for name in chart.COMPONENTS), chart.PRODUCTION, chart.COMPONENTS):
        found += chart.problems(helm, kustomize, components)
    say("chart: compared with kustomize's objects, each component alone, none, and all")
    rendered["chart with everything"] = chart.everything(helm)
    definitions = [*schemas.definitions(), *schemas.fetched()]
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="sluice-k8s-") as folder,
        api_server(etcd, kube_apiserver, Path(folder)) as client,
    ):
        say(f"API server ready in {time.monotonic() - began:.1f} s")
        dry_run = DryRun(client, definitions)
        for overlay, objects in rendered.items():
            problems = dry_run.check(objects)
            found += [f"{overlay}: {problem}" for problem in problems]
            say(f"{overlay}: {len(problems)} problems by the API server")
    return found


def up() -> list[str]:
    """A node of this machine, with Sluice on it."""
    node.up(HOME, say)
    return []


def down() -> list[str]:
    """End it."""
    node.down(HOME, say)
    return []


def main(arguments: list[str]) -> int:
    """Run one of the commands."""
    commands = {"render": render, "check": check, "up": up, "down": down}
    if len(arguments) != 1 or arguments[0] not in commands:
        print("usage: python -m sluice_k8s render|check|up|down", file=sys.stderr)
        return 2
    try:
        found = commands[arguments[0]]()
    except (manifests.RenderError, tools.ToolError, ApiServerError, DryRunError, node.NodeError) as error:
        print(f"k8s: {error}", file=sys.stderr)
        return 1
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
