"""The operators' page as it is delivered: one document that browsers fetch anew each time, and files that never change.

The files lie under the hash of their folder, so a browser keeps them for good, and a new release has new addresses.
All addresses in the page are relative, so it works under any prefix of a proxy. In `index.html` an address of a file
begins with `page/`; here the hash takes its place, and `<!-- modulepreload -->` becomes links to the modules of the
first view.
Everything is read and compressed once, in a thread.
"""

import asyncio
import base64
import gzip
import hashlib
import re
from functools import cache
from http import HTTPStatus
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from api_gateway.settings import PageMode

FOLDER = Path(__file__).resolve().parent / "page"
SHELL = "index.html"
SHELL_PATH = "/ui"
FILES_PATH = "/ui/{version}/{file:path}"

MAX_PRELOADED = 25
_HASH_CHARS = 16
_IMPORT = re.compile(
    r"""(?:^|[;}])\s*(?:import(?:[^'"`;()]*?\bfrom)?|export[^'"`;()=]*?\bfrom)\s*["']([^"']+)["']""", re.MULTILINE
)
"""An import that is not made on demand; several stand on one line of a file without blanks."""
_ADDRESS = re.compile(r"""(["'](?:\./)?)page/""")
_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)
_MAIN = re.compile(r'<script type="module" src="page/([^"]+)">')

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".LICENSE": "text/plain; charset=utf-8",
}
"""Of what a folder of the page may hold; nothing else is delivered."""

_COMPRESSED = (".html", ".css", ".js", ".json", ".svg")


class PageFile(msgspec.Struct, frozen=True):
    """A file: its media type, its bytes, and the same compressed where that is worth it."""

    media_type: str
    content: bytes
    compressed: bytes | None


class PageFiles(msgspec.Struct, frozen=True):
    """The page: its document with the policy of what it may load, and its files by their paths."""

    version: str
    policy: str
    shell: PageFile
    files: dict[str, PageFile]


@cache
def page_files(folder: Path = FOLDER) -> PageFiles:
    """The page in a folder. Blocks for a moment. Raises OSError if there is none."""
    contents = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in _TYPES
    }
    version = _hash_of(contents)
    if SHELL not in contents:
        raise FileNotFoundError(f"there is no {SHELL} in {folder}")
    shell = shell_of(contents, version)
    found = {name: file_of(name, content) for name, content in contents.items() if name != SHELL}
    return PageFiles(version, policy_of(shell), file_of(SHELL, shell.encode()), found)


def shell_of(contents: dict[str, bytes], version: str) -> str:
    """The document, with the addresses of its files and links to the modules that its first view needs."""
    text = contents[SHELL].decode()
    main = _MAIN.search(text)
    first = modules_from(main[1], contents) if main is not None else []
    links = "\n".join(f'<link rel="modulepreload" href="{version}/{name}">' for name in first[:MAX_PRELOADED])
    return _ADDRESS.sub(rf"\g<1>{version}/", text).replace("<!-- modulepreload -->", links)


def policy_of(shell: str) -> str:
    """The Content-Security-Policy of a document: nothing but its own files, and its import map as it is."""
    hashes = "".join(
        f" 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in _IMPORT_MAP.findall(shell)
    )
    return (
        f"default-src 'self'; script-src 'self'{hashes}; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )


def modules_from(main: str, contents: dict[str, bytes]) -> list[str]:
    """The module and all that it imports at once, each before what is imported by it; vendored ones by their name."""
    names = _names_in(contents[SHELL].decode())
    found: dict[str, None] = {}
    todo = [main]
    while todo:
        name = todo.pop(0)
        if name in found or name not in contents:
            continue
        found[name] = None
        for address in _IMPORT.findall(contents[name].decode()):
            if address.startswith("."):
                todo.append(_resolved(name, address))
            elif address in names:
                todo.append(names[address])
    return list(found)


def _names_in(shell: str) -> dict[str, str]:
    """What the import map says: the path of a file by the name under which it is imported."""
    found = _IMPORT_MAP.search(shell)
    if found is None:
        return {}
    imports: dict[str, str] = msgspec.json.decode(found[1].encode(), type=dict[str, dict[str, str]])["imports"]
    return {name: address.removeprefix("./").removeprefix("page/") for name, address in imports.items()}


def _resolved(importer: str, address: str) -> str:
    parts = importer.split("/")[:-1]
    for part in address.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _hash_of(contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_HASH_CHARS]


def file_of(name: str, content: bytes) -> PageFile:
    """A file as it is delivered; its name says its type. Blocks while it is compressed."""
    suffix = Path(name).suffix
    small = gzip.compress(content, 9, mtime=0) if suffix in _COMPRESSED else content
    return PageFile(_TYPES[suffix], content, small if len(small) < len(content) else None)


async def version_of_page(mode: PageMode) -> str:
    """The hash of the page's folder; "" where there is no page."""
    if mode is PageMode.OFF:
        return ""
    return (await asyncio.to_thread(page_files)).version


SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def _shell(request: Request) -> Response:
    # The path in the scope has lost its slash, and behind a proxy it lacks the prefix.
    if not request.scope.get("raw_path", b"").endswith(b"/"):
        return RedirectResponse("ui/", HTTPStatus.TEMPORARY_REDIRECT)
    page = await asyncio.to_thread(page_files)
    headers = {**SAFE_HEADERS, "Cache-Control": "no-cache", "Content-Security-Policy": page.policy}
    return file_answer(request, page.shell, headers)


async def _one_file(request: Request) -> Response:
    page = await asyncio.to_thread(page_files)
    found = page.files.get(request.path_params["file"])
    if found is None or request.path_params["version"] != page.version:
        return Response(status_code=HTTPStatus.NOT_FOUND, headers={"Cache-Control": "no-store"})
    return file_answer(request, found, {**SAFE_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"})


def file_answer(request: Request, file: PageFile, headers: dict[str, str]) -> Response:
    """The file, compressed for who accepts that; what follows from this is added to the headers."""
    content = file.content
    if file.compressed is not None:
        headers["Vary"] = "Accept-Encoding"
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["Content-Encoding"] = file.compressed, "gzip"
    return Response(content, headers=headers, media_type=file.media_type)


def page_routes(mode: PageMode) -> list[Route]:
    """The routes of the page; none if it is off."""
    if mode is PageMode.OFF:
        return []
    return [Route(SHELL_PATH, _shell), Route(FILES_PATH, _one_file)]
