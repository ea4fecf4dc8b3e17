"""Client addresses behind trusted proxies, and the server's public URL.

`Host` and `X-Forwarded-…` headers are used only if a configured proxy sent the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from steelyard.errors import ConfigError

Network: TypeAlias = IPv4Network | IPv6Network

_FORWARDED_ORIGIN = "steelyard.forwarded_origin"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")


def read_proxies(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read the addresses of trusted proxies; each text holds one or several, such as `10.0.0.0/8,::1`."""
    networks = []
    for text in (part.strip() for whole in texts for part in re.split(r"[,\s]+", whole)):
        if not text:
            continue
        try:
            networks.append(ip_network(text, strict=False))
        except ValueError:
            raise ConfigError(
                f"'{text}' is not the address of a proxy.",
                "Give an IP address or a network, such as --trusted-proxy 127.0.0.1 or --trusted-proxy 10.0.0.0/8.",
            ) from None
    return tuple(networks)


def read_public_url(text: str) -> str:
    """Check the server's public URL and return it without a trailing slash."""
    try:
        parts = urlsplit(text)
        host_is_valid = bool(_HOST.fullmatch(parts.netloc)) and (parts.port is None or parts.port > 0)
    except ValueError:
        host_is_valid = False
    if not host_is_valid or parts.scheme not in {"http", "https"} or parts.path.strip("/") or parts.query:
        raise ConfigError(
            f"'{text}' is not the public address of a server.",
            "Give scheme and host only, such as --public-url https://judge.example.org",
        )
    return f"{parts.scheme}://{parts.netloc}"


class TrustedProxies:
    """Take client address, scheme and host from `X-Forwarded-…`, if a trusted proxy sent the request."""

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        client = scope.get("client")
        if scope["type"] == "http" and self._proxies and client and self._trusts(_address(client[0])):
            scope = {**scope, **self._forwarded(Headers(scope=scope), client)}
        await self._app(scope, receive, send)

    def _trusts(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(
            address.version == network.version and address in network for network in self._proxies
        )

    def _forwarded(self, headers: Headers, client: tuple[str, int]) -> Scope:
        changes: Scope = {}
        hops = ",".join(headers.getlist("x-forwarded-for")).split(",")
        # From the right, because each proxy appends an address; the first that is not a trusted proxy is the client.
        for hop in reversed(hops):
            address = _address(hop)
            if address is None:
                break
            changes["client"] = (str(address), client[1])
            if not self._trusts(address):
                break
        scheme = headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower()
        if scheme in {"http", "https"}:
            changes["scheme"] = scheme
        host = headers.get("x-forwarded-host", "").rpartition(",")[2].strip()
        if _HOST.fullmatch(host):
            changes[_FORWARDED_ORIGIN] = f"{changes.get('scheme', 'http')}://{host}"
        return changes


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Read an IP address, with or without a port."""
    plain = text.strip()
    with_port = re.fullmatch(r"\[(.+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+", plain)
    if with_port:
        plain = with_port[1] or with_port[2]
    try:
        address = ip_address(plain)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def address_of(scope: Scope) -> str:
    """The address by which limits count: the client's; for IPv6 its /64 network, which one machine can use entirely."""
    client = scope.get("client")
    if not client:
        return "unknown"
    address = _address(client[0])
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return client[0] if address is None else str(address)


def origin_of(request: Request) -> str:
    """Scheme and host for links: the configured public URL, or a trusted proxy's; otherwise '' for relative links."""
    public: str | None = request.app.state.public_url
    forwarded: str = request.scope.get(_FORWARDED_ORIGIN, "")
    return public or forwarded


def is_https(request: Request) -> bool:
    """Whether browsers reach the server over TLS."""
    return request.url.scheme == "https" or origin_of(request).startswith("https:")
