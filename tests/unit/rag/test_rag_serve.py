import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from rag_fakes import make_system, served

from ragwitness.errors import InputError
from ragwitness.rag.lab import create_app
from ragwitness.rag.serve import serve

SCRIPT = "from rag_fakes import make_system\nfrom ragwitness.rag.serve import serve\n"


def test_prints_its_address_and_ends_cleanly_on_ctrl_c() -> None:
    code = SCRIPT + "serve(make_system(), port=0, announce=lambda s: print(s, flush=True))"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("Listening on ").strip()
        assert url.startswith("http://127.0.0.1:")
        assert not url.endswith(":0/v1")
        assert httpx2.get(url + "/models", trust_env=False).json()["data"][0]["id"] == "rag"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (out, err, process.returncode) == ("Stopped.\n", "", 0)


def test_taken_port_and_bad_host_are_one_line() -> None:
    with served(create_app(make_system(), key="")) as url:
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(InputError, match=r"Cannot listen on 127\.0\.0\.1"):
            serve(make_system(), port=port)
    with pytest.raises(InputError, match="Cannot listen"):
        serve(make_system(), port=70_000)
    with pytest.raises(InputError, match="Cannot listen"):
        serve(make_system(), host="256.0.0.1", port=0)
