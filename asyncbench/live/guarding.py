"""Who may ask the server: the browser that was given its address, and no other page in it."""

import secrets
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from asyncbench.page import LIVE_POLICY

_HEADERS: Final = {
    "Content-Security-Policy": LIVE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STRANGER: Final = "Open the address that `asyncbench view` printed in its terminal.\n"
_LOOPBACK: Final = ("127.0.0.1", "localhost")


class Guard:
    """The token of a server, and what it asks of each request."""

    def __init__(self, port: int) -> None:
        self._token = secrets.token_urlsafe(32)
        self._cookie = f"asyncbench-{port}"  # ports share their cookies
        self._hosts = {f"{name}:{port}" for name in _LOOPBACK}
        self.address = f"http://{_LOOPBACK[0]}:{port}/?token={self._token}"

    async def refusal(self, request: web.Request) -> web.StreamResponse | None:
        """Return what a request gets that may not be answered; None: it may.

        A name that leads here from outside (DNS rebinding) is no host of ours. A token in the address
        becomes a cookie, and leaves the address.
        """
        if request.headers.getall("Host", []) not in [[host] for host in self._hosts]:
            return web.Response(status=403, text="This server answers to 127.0.0.1 and localhost alone.\n")
        if request.method != "GET":
            return web.Response(status=405, text="This server only shows.\n", headers={"Allow": "GET"})
        if request.path == "/" and self._is_ours(request.query.get("token", "")):
            welcome = web.Response(status=303, headers={"Location": "/"})
            welcome.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict", path="/")
            return welcome
        if not self._is_ours(request.cookies.get(self._cookie, "")):
            return web.Response(status=403, text=_STRANGER)
        return None

    def _is_ours(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self._token.encode())


def guarded(guard: Guard) -> Middleware:
    """Return a middleware: only what the guard lets through is handled, and every answer has its headers."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await guard.refusal(request) or await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.reason}\n")
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return answer
