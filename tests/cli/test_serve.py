"""`pertinent serve` starts, says where, answers, and ends when it is interrupted."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import pertinent
from pertinent.cli import main
from pertinent.errors import MissingExtra, SettingError

MODULE = "def model(texts):\n    return [[0.9, 0.1] if 'bad' in t else [0.2, 0.8] for t in texts]\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(tmp_path, how):
    (tmp_path / "served_model.py").write_text(MODULE)
    command = [
        sys.executable,
        "-m",
        "pertinent",
        "serve",
        "--port",
        "0",
        "--model",
        "served_model:model,topics",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(pertinent.__file__).parents[1])}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            address = process.stdout.readline().split()[-1]
            with httpx.Client(follow_redirects=True, timeout=60) as client:
                page = client.get(address)
                form = client.post(str(page.url.join("/api/form")), json={"input": {"text": "so bad"}}).text
                assert ">served_model:model</option>" in form and ">topics</option>" in form
                request = {"model": "served_model:model", "input": {"text": "so bad"}}
                answer = client.post(str(page.url.join("/api/explain")), json=request)
                assert "90.0%" in answer.text
            process.send_signal(how)
            assert process.wait(20) == 0, process.stderr.read()
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_the_address_can_be_opened_when_it_is_told():
    class Opened(Exception):
        pass

    def started(address):
        where = httpx.URL(address)
        socket.create_connection((where.host, where.port), timeout=5).close()
        raise Opened

    with pytest.raises(Opened):
        pertinent.serve({"model": lambda texts: [[0.5, 0.5]] * len(texts)}, port=0, started=started)


def test_a_port_that_is_taken(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    assert f"The port {port} cannot be used" in capsys.readouterr().err


def test_what_it_needs_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pertinent\[app\]'"):
        pertinent.serve()


def test_settings_are_checked(capsys):
    with pytest.raises(SettingError, match="`max_concurrent` must be at least 1"):
        pertinent.serve(max_concurrent=0)
    with pytest.raises(SettingError, match="at least one model"):
        pertinent.serve({})
    assert main(["serve", "--port", "70000"]) == 2
    assert main(["serve", "--model", "sentimental"]) == 2
    assert "sentiment" in capsys.readouterr().err
