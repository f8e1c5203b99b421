"""A proxy in front of a server of object storage, which fails as networks and servers do."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

__all__ = [
    *("DROP", "HALF", "LOSE", "SILENCE", "SILENT_AFTER", "SILENT_HALF"),
    *("Answer", "Fault", "Proxy", "Request", "error", "run_proxy"),
]


class Request(NamedTuple):
    """A request that has arrived.

    :ivar number: from 1
    :ivar path: with the query
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """An answer to send instead of that of the server."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Fault(NamedTuple):
    """What happens to a request.

    :ivar reaches: whether it reaches the server
    :ivar sends: the part of the answer that is sent before the connection is closed; 1 is all, 0 nothing
    :ivar silence: seconds before the connection is closed
    """

    reaches: bool = True
    sends: float = 1.0
    silence: float = 0.0


#: The answer is lost; the request is lost; half of the answer's body is lost.
DROP, LOSE, HALF = Fault(sends=0), Fault(reaches=False, sends=0), Fault(sends=0.5)
#: No answer, until the proxy forgets its plans: to a request that does not reach the server, or that does; or half of
#: the answer's body.
SILENCE, SILENT_AFTER, SILENT_HALF = (one._replace(silence=600) for one in (LOSE, DROP, HALF))

Plan = Callable[[Request], "Fault | Answer | None"]


def error(status: int, code: str) -> Answer:
    """Return an answer with an error of S3."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>a fault of the test</Message></Error>'
    return Answer(status, body.encode(), {"Content-Type": "application/xml"})


class Proxy:
    """The state of a proxy.

    :ivar endpoint: its address
    :ivar plan: returns what happens to a request; :data:`None` for nothing
    :ivar faults: what happens to requests, by their numbers
    :ivar delay: seconds before each answer
    :ivar requests: the requests so far
    :ivar received: bytes of bodies from the client
    :ivar sent: bytes of bodies to the client
    :ivar silent: number of requests that wait for an answer
    """

    def __init__(self, server: str | None) -> None:
        self.endpoint = ""
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.silent = 0
        self._server = server
        self.reset()

    def reset(self) -> None:
        """Forget all requests and plans: the next request has the number 1."""
        with self.lock:
            self.over.set()
            self.over = threading.Event()
            self.plan: Plan = lambda _request: None
            self.faults: dict[int, Fault | Answer] = {}
            self.delay = 0.0
            self.requests: list[Request] = []
            self.received = self.sent = 0

    def forward(self, request: Request) -> Answer:
        """Send a request to the server, and return its answer."""
        assert self._server is not None, f"no answer is planned for {request.method} {request.path}"
        connection = http.client.HTTPConnection(urlsplit(self._server).netloc, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name.lower() not in ("expect", "connection"):
                    connection.putheader(name, value)
            connection.endheaders(request.body)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), dict(answer.getheaders()))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The body of an answer does not wait until its headers have arrived.
    disable_nagle_algorithm = True
    proxy: Proxy

    def log_message(self, *_details: object) -> None:
        """Log nothing."""

    def handle_one_request(self) -> None:
        # Clients close connections when they like.
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()
            return
        self.close_connection = True

    def _do(self) -> None:
        proxy = self.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with proxy.lock:
            number = len(proxy.requests) + 1
            request = Request(number, self.command, self.path, dict(self.headers.items()), body)
            proxy.requests.append(request)
            proxy.received += len(body)
        time.sleep(proxy.delay)
        planned = proxy.faults.get(number) or proxy.plan(request) or Fault()
        fault = Fault() if isinstance(planned, Answer) else planned
        answer = planned if isinstance(planned, Answer) else None
        if answer is None and fault.reaches:
            answer = proxy.forward(request)
        if answer is not None and fault.sends:
            self._answer(answer, fault)
        if fault.silence:
            with proxy.lock:
                proxy.silent += 1
                over = proxy.over
            over.wait(fault.silence)
            with proxy.lock:
                proxy.silent -= 1
        self.close_connection = self.close_connection or fault.sends < 1

    def _answer(self, answer: Answer, fault: Fault) -> None:
        proxy = self.proxy
        self.send_response_only(answer.status)
        for name, value in {"Date": self.date_time_string(), **answer.headers}.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        size = len(answer.body)
        if self.command == "HEAD":
            size = int(next((v for n, v in answer.headers.items() if n.lower() == "content-length"), 0))
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(size))
        self.end_headers()
        part = answer.body[: int(len(answer.body) * fault.sends)]
        self.wfile.write(part)
        with proxy.lock:
            proxy.sent += len(part)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _do


class _Server(ThreadingHTTPServer):
    # Many threads connect at once.
    request_queue_size = 128


@contextlib.contextmanager
def run_proxy(server: str | None = None) -> Iterator[Proxy]:
    """Run a proxy.

    :param server: the endpoint of the server; without one, all answers are planned
    """
    proxy = Proxy(server)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with _Server(("127.0.0.1", 0), handler) as running:
        proxy.endpoint = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.over.set()
            running.shutdown()
            thread.join()
