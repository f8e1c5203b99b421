"""A proxy that delays each request to a server, as a long way does: ``delay.py HOST:PORT SECONDS``.

Its first line of output is its own port. The first bytes that a client sends on a new connection, and after an answer,
wait; all others pass at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator

__all__ = ["delayed"]

_BYTES = 1 << 18


@contextlib.contextmanager
def delayed(endpoint: str, seconds: float) -> Iterator[str]:
    """Run the proxy in a process of its own, and return its endpoint."""
    command = [sys.executable, "-I", __file__, endpoint.removeprefix("http://"), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


class _Connection:
    """A connection of a client, and one to the server for it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_answered = True

    async def requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_BYTES):
            if self._is_answered:
                self._is_answered = False
                await asyncio.sleep(self._seconds)
            writer.write(data)
            await writer.drain()

    async def answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_BYTES):
            self._is_answered = True
            writer.write(data)
            await writer.drain()


async def _main(address: str, seconds: float) -> None:
    host, _, port = address.partition(":")

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            server_reader, server_writer = await asyncio.open_connection(host, port)
            with contextlib.closing(server_writer):
                connection = _Connection(seconds)
                directions = connection.requests(reader, server_writer), connection.answers(server_reader, writer)
                # The end of one direction ends the connection.
                tasks = list(map(asyncio.ensure_future, directions))
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(sys.argv[1], float(sys.argv[2])))
