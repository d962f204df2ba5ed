"""Proxies as sites have them: one that strips a prefix from paths, a balancer; and a server of another site."""

import http.client
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP = {"connection", "transfer-encoding", "keep-alive", "server", "date"}


@contextmanager
def stripping(prefix: str, origin: str) -> Iterator[str]:
    """The origin of a proxy that has everything of another one under a prefix, "/ops" for example."""
    with _forwarding([urlsplit(origin).netloc], prefix) as address:
        yield address


@contextmanager
def balancing(origins: Sequence[str]) -> Iterator[str]:
    """The origin of a balancer before several others: each call goes to the first that accepts a connection."""
    with _forwarding([urlsplit(origin).netloc for origin in origins]) as address:
        yield address


@contextmanager
def _forwarding(targets: Sequence[str], prefix: str = "") -> Iterator[str]:
    class Handler(_Quiet):
        def forward(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            for target in targets:
                upstream = http.client.HTTPConnection(target)
                try:
                    upstream.connect()
                except OSError:
                    continue
                with closing(upstream):
                    self.pass_on(upstream, body)
                return
            self.send_error(502)

        def pass_on(self, upstream: http.client.HTTPConnection, body: bytes) -> None:
            self.close_connection = True
            try:
                # Host and Origin stay what the browser says: so does a proxy that strips a prefix.
                upstream.request(self.command, self.path[len(prefix) :], body, dict(self.headers))
                answer = upstream.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
            except (OSError, http.client.HTTPException):
                # Either side has left: the browser, which is how a feed ends, or a gateway that was killed.
                return

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = forward  # noqa: N815 - part of http.server

    with _served(Handler) as address:
        yield address


@contextmanager
def other_site(html: str) -> Iterator[str]:
    """The origin of a server that answers everything with one page."""

    class Handler(_Quiet):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(html.encode())

    with _served(Handler) as address:
        yield address


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Part of http.server."""


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(5)
