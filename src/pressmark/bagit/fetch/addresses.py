"""Public and private addresses of the Internet Protocol.

The URLs of a fetch file are untrusted, and are requested from this machine: a host name may lead to a machine or
service that only this machine can reach. So addresses must be globally routed.

The ranges are those of the IANA special-purpose address registries (RFC 6890). They are listed here because the ranges
that the standard library calls global depend on its version.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

__all__ = ["resolve", "why_not_public"]

_V4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "private (shared by a provider's customers)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved (documentation)"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved (benchmarks)"),
        ("198.51.100.0/24", "reserved (documentation)"),
        ("203.0.113.0/24", "reserved (documentation)"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_V6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private (unique local)"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private (site-local)"),
        ("ff00::/8", "multicast"),
        ("2001::/23", "reserved (protocols)"),
        ("2001:db8::/32", "reserved (documentation)"),
        ("3fff::/20", "reserved (documentation)"),
    )
)
# All globally routed addresses; all others are reserved.
_V6_GLOBAL = IPv6Network("2000::/3")
# Addresses that contain an address of version 4, and the position of its 32 bits from the end.
_V6_OVER_V4 = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)


def why_not_public(address: str) -> str | None:
    """Return why ``address`` is not globally routed; :data:`None` if it is.

    >>> why_not_public("::ffff:127.0.0.1")
    'loopback'

    :param address: as :func:`socket.getaddrinfo` returns it, with or without a zone
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return "not an address"
    if isinstance(found, IPv6Address):
        for network, shift in _V6_OVER_V4:
            if found in network:
                found = IPv4Address(int(found) >> shift & 0xFFFFFFFF)
                break
    if isinstance(found, IPv4Address):
        return next((what for network, what in _V4 if found in network), None)
    special = next((what for network, what in _V6 if found in network), None)
    return special or (None if found in _V6_GLOBAL else "reserved")


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of ``host``, each once, in the order in which to try them.

    :raises OSError: the host is unknown
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
