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
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from steelyard.errors import ConfigError

Network: TypeAlias = IPv4Network | IPv6Network

FROM_TRUSTED_PROXY = "steelyard.from_trusted_proxy"
"""Key in the scope of a request that a trusted proxy has sent."""
_FORWARDED_ORIGIN = "steelyard.forwarded_origin"
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9_.~-]*)+")
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


def read_root_path(text: str) -> str:
    """Check the path under which a proxy serves the application; return it without a slash at its end."""
    path = text.rstrip("/")
    if path and not _ROOT_PATH.fullmatch(path):
        raise ConfigError(
            f"'{text}' is not a path under which a server can be reached.",
            "Give letters, digits, - and _ between slashes, such as --root-path /tools/annotation",
        )
    return path


def read_public_url(text: str, root_path: str | None = None) -> tuple[str, str]:
    """Check the server's public URL; return it without a trailing slash, and the root path.

    The root path is that of the URL. A `root_path` that is given as well must agree with a path in the URL, and is
    appended to a URL without one.
    """
    try:
        parts = urlsplit(text)
        host_is_valid = bool(_HOST.fullmatch(parts.netloc)) and (parts.port is None or parts.port > 0)
    except ValueError:
        host_is_valid = False
    if not host_is_valid or parts.scheme not in {"http", "https"} or parts.query or parts.fragment:
        raise ConfigError(
            f"'{text}' is not the public address of a server.",
            "Give scheme, host and the root path if there is one, such as --public-url https://judge.example.org",
        )
    path = read_root_path(parts.path)
    if root_path is not None and path not in {"", root_path}:
        raise ConfigError(
            f"the public URL '{text}' has the path '{path}', but the root path is '{root_path}'.",
            "Give the same path in both, or only in --public-url.",
        )
    path = path or root_path or ""
    return f"{parts.scheme}://{parts.netloc}{path}", path


class TrustedProxies:
    """Take client address, scheme and host from `X-Forwarded-…`, if a trusted proxy sent the request."""

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        client = scope.get("client")
        if scope["type"] == "http" and self._proxies and client and self._trusts(_address(client[0])):
            scope = {**scope, **self._forwarded(Headers(scope=scope), client), FROM_TRUSTED_PROXY: True}
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


class RootPath:
    """Remove the root path from requests, whether the proxy has removed it already or not.

    The application behind it sees the paths that it would have at the root. It adds the root path to links, redirects
    and cookies itself.
    """

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        root = self._root_path
        if scope["type"] == "http" and root:
            path = scope["path"]
            if path == root:
                await RedirectResponse(f"{root}/", 308)(scope, receive, send)
                return
            if path.startswith(f"{root}/"):
                raw = scope.get("raw_path")
                scope = {**scope, "path": path.removeprefix(root)}
                if raw is not None:
                    scope["raw_path"] = raw.removeprefix(root.encode())
        await self._app(scope, receive, send)


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
    return public.removesuffix(request.app.state.studies.root_path) if public else forwarded


def is_https(request: Request) -> bool:
    """Whether browsers reach the server over TLS."""
    return request.url.scheme == "https" or origin_of(request).startswith("https:")
