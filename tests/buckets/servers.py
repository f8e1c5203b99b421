"""Servers for tests and benchmarks on this computer: versitygw, over a directory."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

#: What the server is started with, and what its users set.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
BUILT = Path(__file__).parents[2] / "build" / "bin" / "versitygw"


def find_versitygw() -> str | None:
    """Return the path of the program, if it is there: that of PRESSMARK_VERSITYGW, one in PATH, or the built one."""
    chosen = os.environ.get("PRESSMARK_VERSITYGW") or shutil.which("versitygw")
    return chosen or (str(BUILT) if BUILT.exists() else None)


def free_port() -> int:
    """Return a port that no server uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def user_settings(folder: Path) -> dict[str, str]:
    """Return the variables of a user of the server.

    :param folder: without files with the settings of a user
    """
    names = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
    files = {name: str(folder / name) for name in names}
    return {**CREDENTIALS, "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", **files}


def set_variables(settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace all variables that botocore reads."""
    for name in os.environ:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[str]:
    """Run versitygw over a directory, and return its endpoint; without the program, skip the test."""
    program = find_versitygw()
    if program is None:
        pytest.skip("versitygw is not installed; ci/test --all builds it")
    data = folder.resolve() / "data"
    data.mkdir()
    port = free_port()
    command = [program, "--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive", "posix", str(data)]
    environment = {
        **os.environ,
        "ROOT_ACCESS_KEY": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_KEY": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    }
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.02)
        assert process.poll() is None, (folder / "log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
