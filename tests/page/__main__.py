"""Look at the page without a system: a gateway in memory with sample data, on a loopback port.

    cd <the tree> and put `tests` and the sources on PYTHONPATH, then

    python -m page                          serve until Ctrl-C, and print the address (port 10099)
    python -m page --port 10123             on another port
    python -m page --empty                  a system that nothing is in yet
    python -m page --large                  10,000 streams, and a stream of 1,000 segments after 500 scales
    python -m page --streams 500 --segments 64 --scales 40

    python -m page --screenshot '#/streams' out.png
    python -m page --screenshot '#/streams/demo/orders' --theme dark --width 1280 --height 900 out.png
    python -m page --at http://127.0.0.1:10099/ui/ --screenshot '#/' out.png    of a gateway that runs already
    python -m page --pictures FOLDER        of every page, and of a stream's tabs, in both themes at 1440 x 900
    python -m page --at … --stream demonstration/heartbeats --pictures FOLDER

A screenshot is taken when the page has been silent for a moment; what the console said and which calls failed is
printed, so this is also the quickest way to see why a page stays empty. The files are read anew with each request:
change a module, reload. Container 2 is silent: what needs it fails; `curl -X POST <origin>/sample/heal` heals it.
Scopes of interest: demo (orders has everything, payments transactions, wide many segments), shop, iot, old, load.
"""

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from page.browser import THEMES, browser, look
from page.gateway import PageGateway, in_thread
from page.routes import PAGES, TABS
from page.sample_data import LARGE, Size


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m page", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=10099)
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--streams", type=int, default=Size().streams)
    parser.add_argument("--segments", type=int, default=Size().segments)
    parser.add_argument("--scales", type=int, default=Size().scales)
    parser.add_argument("--at", help="the address of a page that is served already")
    parser.add_argument("--screenshot", metavar="ROUTE", help="such as '#/streams'")
    parser.add_argument("--pictures", metavar="FOLDER", type=Path)
    parser.add_argument("--stream", default="demo/orders", help="whose pictures are taken")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=800)
    parser.add_argument("out", nargs="?", type=Path, default=Path("page.png"))
    given = parser.parse_args()
    # Of the workflows that are meant to fail.
    logging.getLogger("sluice.engine.runner").setLevel(logging.ERROR)
    size = LARGE if given.large else Size(given.streams, given.segments, given.scales)
    wanted = None if given.empty else size
    if given.screenshot is None and given.pictures is None:
        asyncio.run(_serve(wanted, given.port))
    elif given.at:
        _shoot(given.at, given)
    else:
        with in_thread(wanted) as served:
            _shoot(served.url, given)


def _shoot(url: str, given: argparse.Namespace) -> None:
    with browser() as chromium:
        if given.pictures is None:
            _show(look(chromium, url, given.screenshot, given.out, given.theme, given.width, given.height), given.out)
            return
        stream = f"#/streams/{given.stream}"
        routes = PAGES | {"stream": stream} | {f"stream-{tab}": f"{stream}?tab={tab}" for tab in TABS}
        for name, route in routes.items():
            for theme in THEMES:
                out = given.pictures / f"{name}-{theme}.png"
                _show(look(chromium, url, route, out, theme, 1440, 900), out)


def _show(seen: list[str], out: Path) -> None:
    for line in seen:
        print(line, file=sys.stderr)
    print(out)


async def _serve(size: Size | None, port: int) -> None:
    gateway = PageGateway(size, port, fresh_files=True)
    await gateway.start()
    print(f"{gateway.url}   Ctrl-C ends it", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await gateway.stop()


if __name__ == "__main__":
    main()
