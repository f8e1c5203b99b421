"""The peers: each in one process for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from . import samples
from .peers import NAMES, Missing, Peer, marks, open_peer

#: Returns a peer by its name, or skips the test.
PeerNamed = Callable[[str], Peer]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "every_storage" in metafunc.fixturenames:
        where = ["disk"] if metafunc.definition.get_closest_marker("on_disk") else ["disk", "memory", "bucket"]
        metafunc.parametrize("every_storage", where, indirect=True)


@pytest.fixture
def every_storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with storage roots on the disk, and in memory and in a bucket unless it is marked ``on_disk``."""
    monkeypatch.setattr(samples, "place", request.param)


EVERY = [pytest.param(name, marks=marks(name)) for name in NAMES]


@pytest.fixture(scope="session")
def peer_named(request: pytest.FixtureRequest) -> Iterator[PeerNamed]:
    """Return peers by their names; a missing one is made or fails with ``--require-all-peers``, and skips without."""
    is_required = request.config.getoption("--require-all-peers")
    opened: dict[str, Peer] = {}

    def named(name: str) -> Peer:
        try:
            if name not in opened:
                opened[name] = open_peer(name, make=is_required)
        except Missing as missing:
            if is_required or (name == "ocfl-py" and request.config.getoption("--require-peers")):
                pytest.fail(str(missing))
            pytest.skip(str(missing))
        return opened[name]

    yield named
    for one in opened.values():
        one.close()


@pytest.fixture(params=EVERY)
def peer(request: pytest.FixtureRequest, peer_named: PeerNamed) -> Peer:
    """A peer that validates."""
    return peer_named(request.param)
