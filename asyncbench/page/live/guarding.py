"""Who may ask the server: the browser that was given its address, and no other page in it."""

import secrets
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from asyncbench.page.shell import LIVE_POLICY

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
_USED: Final = "This address was opened before, and opens once. Run `asyncbench view` again for another.\n"
# No redirect: a browser that a file led here sends the strict cookie only where a page of ours leads.
_ON_TO_THE_PAGE: Final = '<!doctype html><meta http-equiv="refresh" content="0; url=/">\n'
_LOOPBACK: Final = ("127.0.0.1", "localhost")


class Guard:
    """The secrets of a server, and what it asks of each request."""

    def __init__(self, port: int) -> None:
        self._token, self._session = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._used = False
        self._cookie = f"asyncbench-{port}"  # ports share their cookies
        self._hosts = {f"{name}:{port}" for name in _LOOPBACK}
        self.address = f"http://{_LOOPBACK[0]}:{port}/?token={self._token}"

    async def refusal(self, request: web.Request) -> web.StreamResponse | None:
        """Return what a request gets that may not be answered; None: it may.

        A name that leads here from outside (DNS rebinding) is no host of ours. The token in the address works
        once: it leaves the address, and the browser that opened it has a cookie.
        """
        if request.headers.getall("Host", []) not in [[host] for host in self._hosts]:
            return web.Response(status=403, text="This server answers to 127.0.0.1 and localhost alone.\n")
        if request.method != "GET":
            return web.Response(status=405, text="This server only shows.\n", headers={"Allow": "GET"})
        known = _equal(request.cookies.get(self._cookie, ""), self._session)
        if request.path == "/" and _equal(request.query.get("token", ""), self._token):
            return self._welcome() if known or not self._used else web.Response(status=403, text=_USED)
        return None if known else web.Response(status=403, text=_STRANGER)

    def _welcome(self) -> web.StreamResponse:
        self._used = True
        welcome = web.Response(text=_ON_TO_THE_PAGE, content_type="text/html")
        welcome.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
        return welcome


def _equal(token: str, ours: str) -> bool:
    # A header may hold any bytes, which aiohttp reads as surrogates.
    return secrets.compare_digest(token.encode(errors="surrogateescape"), ours.encode())


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
