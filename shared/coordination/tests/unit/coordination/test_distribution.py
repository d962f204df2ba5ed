"""The distribution without its extras."""

import subprocess
import sys
from pathlib import Path

_WITHOUT_EXTRAS = """
import asyncio, sys
sys.modules.update({"redis": None, "opensearchpy": None})
from sluice_coordination import open_store
async def main():
    for url in ("memory:", f"file:{sys.argv[1]}"):
        async with open_store(url) as store:
            print(await store.get("a"))
asyncio.run(main())
"""


def test_documents_in_memory_and_in_a_file_need_no_extra(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WITHOUT_EXTRAS, str(tmp_path / "documents.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("None\nNone\n", 0), done.stderr
