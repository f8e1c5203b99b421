"""Requests to S3: addressed and signed by the settings of the AWS command line, and sent through urllib3.

botocore finds the settings: credentials (and renews them), profile, region, endpoint, certificates, proxies. Its client
takes a millisecond of processor time for each request, four times as much as this module.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSHTTPConnectionPool, AWSHTTPSConnectionPool
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import InvalidRegionError, NoCredentialsError
from botocore.httpsession import ProxyConfiguration, get_cert_path
from botocore.regions import EndpointResolver
from botocore.session import Session
from botocore.utils import (
    check_dns_name,
    get_environ_proxies,
    is_valid_endpoint_url,
    is_valid_ipv4_endpoint_url,
    is_valid_ipv6_endpoint_url,
    validate_region_name,
)
from urllib3 import BaseHTTPResponse, PoolManager, ProxyManager, Retry, Timeout
from urllib3.connection import HTTPConnection

from pressmark.version import __version__

__all__ = ["S3Requests", "signature"]

CONNECT_TIMEOUT = 10.0
# Content of this size or more waits until the server accepts it, and goes in blocks, each with the time-out.
BLOCKWISE, BLOCK = 1 << 20, 1 << 16
_NONE = hashlib.sha256().hexdigest()
_ONCE = Retry(False)
_KEEPALIVE = [*HTTPConnection.default_socket_options, (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Headers that a proxy may change.
_UNSIGNED = ("user-agent", "content-length", "expect")


class S3Requests:
    """Requests to the buckets of a server.

    :param endpoint: the URL of the server; without one, that of the settings, or Amazon
    :param profile: of the settings
    :param region: without one, that of the settings
    :param timeout: seconds that the server may be silent
    :param connections: number of connections to keep open
    :ivar endpoint: without a bucket
    :ivar region: of the bucket
    :raises botocore.exceptions.BotoCoreError: the profile does not exist, or the region is malformed
    :raises ValueError: the endpoint is malformed
    """

    def __init__(
        self, endpoint: str | None, profile: str | None, region: str | None, timeout: float, connections: int
    ) -> None:
        self._session = Session(profile=profile)
        settings = self._session.get_scoped_config()
        if endpoint is None and not self._session.get_config_variable("ignore_configured_endpoint_urls"):
            endpoint = ConfiguredEndpointProvider(self._session.full_config, settings, "s3").provide()
        region = region or self._session.get_config_variable("region")
        validate_region_name(region)
        self._is_amazon = endpoint is None
        self.region = region or "us-east-1"
        self.endpoint = endpoint or self._amazon(self.region)
        if not is_valid_endpoint_url(self.endpoint) and not is_valid_ipv6_endpoint_url(self.endpoint):
            raise ValueError(f"Invalid endpoint: {self.endpoint}")
        style = (settings.get("s3") or {}).get("addressing_style")
        # Few servers other than Amazon's have a host name for each bucket.
        host = urlsplit(self.endpoint).hostname or ""
        self._has_hosts = ".amazonaws." in host if style is None else style != "path"
        self._has_hosts = self._has_hosts and not is_valid_ipv4_endpoint_url(self.endpoint) and ":" not in host
        verify = self._session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE") or True
        self._options: dict[str, Any] = {
            "timeout": Timeout(connect=min(timeout, CONNECT_TIMEOUT), read=timeout),
            "maxsize": connections,
            "socket_options": _KEEPALIVE,
            "cert_reqs": "CERT_REQUIRED",
            "ca_certs": get_cert_path(verify),
        }
        self._pools: dict[str, tuple[Any, str, str]] = {}
        self._lock = Lock()
        self._credentials: Any = None
        self._signing: tuple[tuple[str, ...], bytes] = ((), b"")

    def close(self) -> None:
        """Close the connections."""
        for pool, _before, _host in self._pools.values():
            pool.close()
        self._pools.clear()

    def _amazon(self, region: str) -> str:
        """Return the endpoint of Amazon in a region."""
        variants = {name: bool(self._session.get_config_variable(name)) for name in _VARIANTS}
        known = self._session.get_component("data_loader").load_data("endpoints")
        found = EndpointResolver(known).construct_endpoint("s3", region, **variants) or {}
        return f"https://{found.get('hostname') or f's3.{region}.amazonaws.com'}"

    def move(self, region: str) -> None:
        """Send the next requests to another region, which the server has named."""
        try:
            validate_region_name(region)
        except InvalidRegionError:
            return
        if self._is_amazon:
            self.endpoint = self._amazon(region)
        self.region = region

    def address(self, bucket: str, key: str) -> tuple[str, str]:
        """Return the URL of the server of a bucket, and the quoted path of a key of it, or of the bucket itself."""
        scheme, network, base, _query, _fragment = urlsplit(self.endpoint)
        path = base.rstrip("/")
        if self._has_hosts and check_dns_name(bucket) and ("." not in bucket or scheme == "http"):
            network = f"{bucket}.{network}"
        else:
            path += f"/{bucket}"
        return f"{scheme}://{network}", f"{path}/{quote(key, safe='/~')}" if key else path or "/"

    def send(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Mapping[str, str | None],
        headers: Mapping[str, str],
        data: bytes | memoryview = b"",
        sha256: str | None = None,
        *,
        is_streamed: bool = False,
    ) -> BaseHTTPResponse:
        """Send a request once, and return the answer, whatever its status.

        :param query: unquoted; :data:`None` for a name without a value
        :param sha256: hex digest of the content, if it is known
        :param is_streamed: leave the content of the answer to be read
        """
        url, path = self.address(bucket, key)
        pool, before, host = self._pools.get(url) or self._connected(url)
        pairs = sorted((quote(name, safe="~"), value) for name, value in query.items())
        values = [(name, quote(value or "", safe="~"), value is None) for name, value in pairs]
        if url.startswith("https:") and any(name.startswith("x-amz-checksum-") for name in headers):
            digest = "UNSIGNED-PAYLOAD"  # the server compares the checksum
        else:
            digest = sha256 or (hashlib.sha256(data).hexdigest() if data else _NONE)
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        sent = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": now, **headers}
        if data or method in ("PUT", "POST"):
            sent["content-length"] = str(len(data))
        body: object = data or None
        if len(data) >= BLOCKWISE:
            sent["expect"] = "100-continue"
            body = _blocks(data)
        sent["user-agent"] = f"pressmark/{__version__}"
        self._sign(method, path, "&".join(f"{name}={value}" for name, value, _ in values), sent)
        bare = "&".join(name if is_bare else f"{name}={value}" for name, value, is_bare in values)
        answer: BaseHTTPResponse = pool.urlopen(
            method,
            before + path + (bare and f"?{bare}"),
            body=body,
            headers=sent,
            retries=_ONCE,
            redirect=False,
            assert_same_host=False,
            preload_content=not is_streamed,
            decode_content=False,
        )
        return answer

    def _connected(self, url: str) -> tuple[Any, str, str]:
        """Return the connections to a server, what precedes a path (the server, for a proxy that reads requests), and
        the name of the host.
        """
        proxies = ProxyConfiguration(get_environ_proxies(url))
        proxy = proxies.proxy_url_for(url)
        with self._lock:
            if url not in self._pools:
                manager = (
                    ProxyManager(proxy, proxy_headers=proxies.proxy_headers_for(proxy), **self._options)
                    if proxy
                    else PoolManager(**self._options)
                )
                # They wait until the server accepts the request before they send content.
                manager.pool_classes_by_scheme = {"http": AWSHTTPConnectionPool, "https": AWSHTTPSConnectionPool}
                before = url if proxy and url.startswith("http:") else ""
                self._pools[url] = manager.connection_from_url(url), before, _host(url)
            return self._pools[url]

    def _sign(self, method: str, path: str, query: str, headers: dict[str, str]) -> None:
        """Add the signature to the headers of a request."""
        if self._credentials is None:
            with self._lock:
                self._credentials = self._credentials or self._session.get_credentials()
            if self._credentials is None:
                raise NoCredentialsError
        access, secret, token, *_ = self._credentials.get_frozen_credentials()
        if token:
            headers["x-amz-security-token"] = token
        date = headers["x-amz-date"][:8]
        which, key = self._signing
        if which != (secret, date, self.region):
            key = f"AWS4{secret}".encode()
            for one in (date, self.region, "s3", "aws4_request"):
                key = _hmac(key, one)
            self._signing = ((secret, date, self.region), key)
        names, signed = signature(key, self.region, method, path, query, headers)
        scope = f"{access}/{date}/{self.region}/s3/aws4_request"
        headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={signed}"


_VARIANTS = ("use_dualstack_endpoint", "use_fips_endpoint")


def signature(
    key: bytes, region: str, method: str, path: str, query: str, headers: Mapping[str, str]
) -> tuple[str, str]:
    """Return the names of the headers that are signed, and the signature (version 4) of a request.

    :param key: signing key of the day, the region and the service
    :param path: quoted
    :param query: quoted, in the order of the names
    :param headers: by names in lower case
    """
    signed = sorted(name for name in headers if name not in _UNSIGNED)
    names = ";".join(signed)
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed)
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
    date = headers["x-amz-date"]
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{date}\n{date[:8]}/{region}/s3/aws4_request\n{digest}"
    return names, _hmac(key, text).hex()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _host(url: str) -> str:
    """Return the host of a URL, with its port unless that is the usual one."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return host.removesuffix(f":{parts.port}") if parts.port == _DEFAULT_PORTS[parts.scheme] else host


def _blocks(data: bytes | memoryview) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[at : at + BLOCK] for at in range(0, len(view), BLOCK))
