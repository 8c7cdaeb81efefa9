"""Who may ask: every request shows a token, as a bearer token or, in a browser, as a cookie.

The page is opened once with `?token=`, gets the cookie, and is sent to the same address without the token, so that it
stays in no history. The cookie is for this site alone (SameSite=Strict), no script reads it, and its name has the port
of the server, because browsers give cookies to all ports of a host. Nothing of a request is read before its token has
been compared, in constant time.

A page that is `framed` may stand inside a page of this machine, as a notebook does. No cookie reaches it there, so its
own files, which are the same for everybody, need no token; its script takes the token from the fragment of the address,
which no browser sends to any server, and shows it with each question.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_PAGES = "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*"
"""Whose pages may frame the page of a notebook."""

HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class TokenRequired:
    """Lets requests with the right token through; the others get 401 and learn nothing."""

    def __init__(self, app: ASGIApp, token: str, port: int = 0, framed: bool = False) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = cookie_name(port)
        self._framed = framed
        ancestors = f"'self' {LOCAL_PAGES}" if framed else "'self'"
        policy = f"default-src 'self'; img-src 'self' data:; frame-ancestors {ancestors}; base-uri 'none'"
        self._headers = [(b"content-security-policy", policy.encode())]
        self._headers += [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._headers]
            await send(message)

        refusal = self._entered(scope) or self._refused(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _entered(self, scope: Scope) -> Response | None:
        """The answer to a browser that brings the token in the address."""
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        given = dict(query).get("token", "")
        if scope["method"] != "GET" or not given or not self._is_token(given):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = scope["path"] if scope["path"].startswith("/") and not scope["path"].startswith("//") else "/"
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(
            self._cookie, given, httponly=True, samesite="strict", secure=scope["scheme"] == "https", path="/"
        )
        return answer

    def _refused(self, scope: Scope) -> Response | None:
        if self._framed and scope["method"] == "GET" and (scope["path"] == "/" or scope["path"].startswith("/page/")):
            return None
        headers = Headers(scope=scope)
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(bearer.strip()):
            return None
        if self._is_token(_cookie(headers.get("cookie", ""), self._cookie)) and _from_this_site(headers):
            return None
        return JSONResponse(
            {"error": "a token is needed: the header 'Authorization: Bearer ...', or the address that was printed"},
            status_code=401,
            headers={"www-authenticate": "Bearer"},
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)


def cookie_name(port: int) -> str:
    """The name of the cookie of the server that listens on a port."""
    return f"interlace_token_{port}"


def _cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _from_this_site(headers: Headers) -> bool:
    """Whether a browser's request comes from the page itself; `Origin` is there with everything but plain reading."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host", "")
