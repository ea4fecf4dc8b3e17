"""An identity provider for tests: discovery, authorization with PKCE, tokens and keys, right or wrong on demand."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CLIENT = "steelyard-client"


class StandInIssuer:
    """Signs everybody in as `email`. `claims` replace those of the token; `forge` names a way to sign it wrongly."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.email = "ann@lab.example"
        self.claims: dict[str, Any] = {}
        self.forge = ""
        self._key = rsa.generate_private_key(65537, 2048)
        self._codes: dict[str, dict[str, str]] = {}

    def description(self) -> dict[str, Any]:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return {"issuer": self.url, **{name: f"{self.url}/{path}" for name, path in paths.items()}}

    def keys(self) -> dict[str, Any]:
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**key, "kid": "k1", "use": "sig", "alg": "RS256"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Return where the browser is sent."""
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        query = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if query is None or challenge != query["code_challenge"] or form["redirect_uri"] != query["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "sub": "1", "aud": query["client_id"], "iat": now, "exp": now + 300}
        claims |= {"nonce": query["nonce"], "email": self.email, "email_verified": True, **self.claims}
        return 200, {"token_type": "Bearer", "access_token": "x", "id_token": self._signed(claims)}

    def _signed(self, claims: dict[str, Any]) -> str:
        header = {"kid": "k1"}
        if self.forge == "unsigned":
            return jwt.encode(claims, "", algorithm="none", headers=header)
        if self.forge == "shared secret":
            # The classic confusion: the public key, which everybody knows, used as the secret of an HMAC.
            pem = self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            parts = [{"alg": "HS256", "typ": "JWT", **header}, claims]
            text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
            mark = base64.urlsafe_b64encode(hmac.digest(pem, text, "sha256")).rstrip(b"=")
            return (text + b"." + mark).decode()
        if self.forge == "another key":
            return jwt.encode(claims, rsa.generate_private_key(65537, 2048), algorithm="RS256", headers=header)
        if self.forge == "unknown key":
            return jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), algorithm="ES256", headers={"kid": "k9"})
        return jwt.encode(claims, self._key, algorithm="RS256", headers=header)


@contextmanager
def stand_in_issuer() -> Iterator[StandInIssuer]:
    """Run an issuer on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

        def _answer(self, status: int, body: Any, location: str | None = None) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
            if path == "/.well-known/openid-configuration":
                self._answer(200, issuer.description())
            elif path == "/keys":
                self._answer(200, issuer.keys())
            elif path == "/authorize":
                self._answer(302, {}, issuer.authorize({name: values[0] for name, values in query.items()}))
            else:
                self._answer(404, {})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._answer(*issuer.token({name: values[0] for name, values in form.items()}))

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = StandInIssuer(f"http://127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield issuer
        server.shutdown()
