"""The operators' page as it is delivered: what browsers keep, what they fetch anew, and under any prefix."""

import base64
import gzip
import hashlib
import re
from pathlib import Path

import httpx
import pytest
from unit.gateway.rest.world import World

from api_gateway.console.page_files import FOLDER, MAX_PRELOADED, modules_from, page_files
from api_gateway.edge.security.browsers import Browsers
from api_gateway.settings import PageMode

SHELL = """<html><link rel="stylesheet" href="page/page.css">
<script type="importmap">{"imports": {"lib": "./page/vendor/lib.js"}}</script>
<!-- modulepreload -->
<script type="module" src="page/core/main.js"></script></html>"""
MODULES = {
    "core/main.js": """import {a} from './a.js';
import {
  b,
} from '../parts/b.js';
const later = () => import('./late.js');""",
    "core/a.js": "export {c} from 'lib';\nexport const TEXT = './no-module.js';",
    "core/late.js": "",
    "core/no-module.js": "",
    "parts/b.js": "import '../core/a.js';",
    "vendor/lib.js": """function f(){return 1}export{f};import{g as h}from"./more.js";""",
    "vendor/more.js": "",
}


FIRST = ("core/main.js", "core/a.js", "parts/b.js", "vendor/lib.js", "vendor/more.js")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a small page."""
    for name, text in {"index.html": SHELL, "page.css": "x" * 2000, **MODULES}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_first_view_names_the_modules_that_it_imports_at_once(folder: Path) -> None:
    page = page_files(folder)
    named = re.findall(r'rel="modulepreload" href="([^"]+)"', page.shell.content.decode())
    assert named == [f"{page.version}/{n}" for n in FIRST]
    assert f'"./{page.version}/vendor/lib.js"' in page.shell.content.decode()
    assert "page/" not in page.shell.content.decode().replace("page.css", "")


def test_the_policy_knows_the_import_map_and_no_other_script(folder: Path) -> None:
    page = page_files(folder)
    script = re.search(r'<script type="importmap">(.*?)</script>', page.shell.content.decode(), re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in page.policy
    assert "default-src 'self'" in page.policy and "unsafe" not in page.policy


def test_each_change_of_a_file_has_its_own_addresses(folder: Path) -> None:
    before = page_files(folder).version
    (folder / "core" / "late.js").write_text("changed")
    page_files.cache_clear()
    assert page_files(folder).version != before


async def test_browsers_fetch_the_page_anew_and_keep_its_files(world: World) -> None:
    shell = await world.call("GET", "/ui/")
    assert (shell.status_code, shell.headers["cache-control"]) == (200, "no-cache")
    assert shell.headers["content-security-policy"] == page_files().policy
    addresses = re.findall(r'(?:href|src)="([^"]+)"', shell.text)
    assert addresses and all(address.startswith(f"{page_files().version}/") for address in addresses)
    for address in addresses:
        file = await world.call("GET", f"/ui/{address}")
        assert (file.status_code, file.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
        assert file.headers["x-content-type-options"] == "nosniff"
    assert (await world.call("HEAD", "/ui/")).status_code == 200


async def test_files_travel_compressed_to_who_accepts_that(world: World) -> None:
    path = f"/ui/{page_files().version}/page.css"
    plain = await world.client.get(path, headers={"Accept-Encoding": "identity"})
    packed = await world.client.get(path, headers={"Accept-Encoding": "gzip"})
    assert plain.content == packed.content == (FOLDER / "page.css").read_bytes()
    assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(gzip.compress(plain.content, 9, mtime=0))


@pytest.mark.parametrize(
    "path", ["/ui/0000/page.css", "/ui/{}/none.js", "/ui/{}/index.html", "/ui/{}/../page_files.py"]
)
async def test_what_is_no_file_of_this_page_is_not_kept(world: World, path: str) -> None:
    answer = await world.call("GET", path.format(page_files().version))
    assert answer.status_code == 404
    assert answer.headers.get("cache-control", "no-store") == "no-store"


async def test_the_page_without_its_slash_is_next_door(world: World) -> None:
    answer = await world.call("GET", "/ui")
    assert (answer.status_code, answer.headers["location"]) == (307, "ui/")


async def test_there_is_no_page_where_it_is_off() -> None:
    world = World(browsers=Browsers(mode=PageMode.OFF))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        assert (await client.get("/ui/")).status_code == 404


def test_the_first_view_needs_few_modules() -> None:
    contents = {p.relative_to(FOLDER).as_posix(): p.read_bytes() for p in FOLDER.rglob("*") if p.is_file()}
    assert 3 < len(modules_from("core/main.js", contents)) <= MAX_PRELOADED


async def test_larger_answers_are_compressed_for_who_accepts_that(world: World, scope: str) -> None:
    for number in range(60):
        assert (await world.call("PUT", f"/sluice/v1/scopes/{scope}-{number:040}")).status_code == 201
    packed = await world.client.get("/sluice/v1/scopes", headers={"Accept-Encoding": "gzip"})
    plain = await world.client.get("/sluice/v1/scopes", headers={"Accept-Encoding": "identity"})
    assert packed.json() == plain.json()
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
