"""A local web server that misbehaves on request."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers))
        answers = self.server.answers.get(self.path, [self.server.default])
        # The last answer is repeated.
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(self)

    def log_message(self, *_arguments: Any) -> None:
        pass

    def send(self, status: int, headers: dict[str, str], body: bytes = b"", *, length: bool = True) -> None:
        """Send an answer; without its ``length``, its end is not announced."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length and "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """The server; ``requests`` lists path and headers of each request, ``default`` answers all other paths."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: str, context: ssl.SSLContext | None) -> None:
        super().__init__((address, 0), Handler)
        self.requests: list[tuple[str, Message]] = []
        self.answers: dict[str, list[Answer]] = {}
        self.default: Answer = missing
        self.scheme = "http" if context is None else "https"
        self.stopped = threading.Event()
        if context is not None:
            # The connection's own thread does the handshake.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_arguments: Any) -> None:
        """Tests let clients disconnect in the middle."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def paths(self) -> list[str]:
        return [path for path, _headers in self.requests]

    def ranges(self) -> list[str | None]:
        return [headers["Range"] for _path, headers in self.requests]

    def url(self, path: str = "/file", host: str | None = None) -> str:
        return f"{self.scheme}://{host or self.server_address[0]!s}:{self.port}{path}"

    def answer(self, path: str, *answers: Answer) -> str:
        """Answer requests for ``path`` with these answers in turn; return its URL."""
        self.answers[path] = list(answers)
        return self.url(path)


@contextmanager
def serving(address: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server that runs during the block."""
    server = Server(address, context)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


# --- answers


def missing(handler: Handler) -> None:
    handler.send(404, {})


def status(code: int, **headers: str) -> Answer:
    """Answer with a status only; underscores in header names become hyphens."""
    return lambda handler: handler.send(code, {name.replace("_", "-"): value for name, value in headers.items()})


def redirect(url: str, code: int = 302) -> Answer:
    return status(code, Location=url)


def below(folder: Path) -> Answer:
    """Answer with the files of a folder."""

    def answer(handler: Handler) -> None:
        path = folder / unquote(handler.path[1:])
        (whole(path.read_bytes()) if path.is_file() else missing)(handler)

    return answer


def whole(body: bytes, **headers: str) -> Answer:
    """Answer with the whole body, ignoring ranges."""
    return lambda handler: handler.send(200, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def ranged(body: bytes, etag: str = '"one"') -> Answer:
    """Answer as a correct server does."""

    def answer(handler: Handler) -> None:
        found = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "")
        if found is None or handler.headers["If-Range"] != etag:
            handler.send(200, {"ETag": etag, "Accept-Ranges": "bytes"}, body)
            return
        start = int(found[1])
        if start >= len(body):
            handler.send(416, {"Content-Range": f"bytes */{len(body)}"})
            return
        span = f"bytes {start}-{len(body) - 1}/{len(body)}"
        handler.send(206, {"ETag": etag, "Content-Range": span}, body[start:])

    return answer


def dropped(body: bytes, after: int, etag: str | None = '"one"', **headers: str) -> Answer:
    """Start to answer, and close the connection after this many bytes."""

    def answer(handler: Handler) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if etag is not None:
            given["ETag"] = etag
        handler.send(200, {"Content-Length": str(len(body))} | given, body[:after])
        handler.close_connection = True

    return answer


def drip(size: int = 1, pause: float = 0.01, **headers: str) -> Answer:
    """Answer endlessly, a few bytes at a time."""

    def answer(handler: Handler) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.send(200, {"Connection": "close"} | given, length=False)
        while not handler.server.stopped.wait(pause):
            handler.wfile.write(b"x" * size)

    return answer


def silence(handler: Handler) -> None:
    """Do not answer until the server ends."""
    handler.server.stopped.wait()
    handler.close_connection = True


# --- TLS


class Certificates:
    """A test certificate authority, and a server certificate from it.

    :param folder: directory for the files
    :param names: names of the server, as in the subjectAltName of a certificate: ``DNS:localhost,IP:127.0.0.1``
    """

    def __init__(self, folder: Path, names: str) -> None:
        self.authority = folder / "authority.pem"
        key, server, server_key = folder / "authority.key", folder / "server.pem", folder / "server.key"
        request, extensions = folder / "server.csr", folder / "extensions"
        extensions.write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
        new = ("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        sign = ("openssl", "x509", "-req", "-days", "2", "-in", request)
        usage = ("-addext", "keyUsage=critical,keyCertSign")
        for command in (
            (*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", key, "-out", self.authority, *usage),
            (*new, "-subj", "/CN=server", "-keyout", server_key, "-out", request),
            (*sign, "-CA", self.authority, "-CAkey", key, "-CAcreateserial", "-extfile", extensions, "-out", server),
        ):
            subprocess.run(command, check=True, capture_output=True, cwd=folder)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(server, server_key)


OPENSSL = shutil.which("openssl")
