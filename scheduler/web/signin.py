"""Signing in with a browser: a token, or a one-time link, becomes a cookie that no script can read."""

from __future__ import annotations

from html import escape
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from scheduler.core.access import Access, Token
from scheduler.web.answers import Malformed
from scheduler.web.backend import backend_of
from scheduler.web.fields import Body
from scheduler.web.fields import Text as TextField
from scheduler.web.guard import COOKIE, session_of
from scheduler.web.inputs import read_body
from scheduler.web.operation import Operation, caller_of
from scheduler.web.parameters import Text
from scheduler.web.shapes import TEXT

FORM = "application/x-www-form-urlencoded"
FORM_LIMIT = 16 << 10
CODE = Text("code", "Of a one-time link.")
SIGN_IN = Body((TextField("token", "With which somebody signs in.", 200),), FORM_LIMIT, FORM)
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>schedulerd</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:32em;margin:4em auto;padding:0 1em}}
input,button{{font:inherit;padding:.4em .6em;width:100%;box-sizing:border-box;margin:.3em 0}}</style>
<h1>schedulerd</h1>
{body}
</html>
"""
_ASK = """<p>{said}</p>
<form method="post" action="/signin">
<label>Token <input type="password" name="token" autocomplete="current-password" autofocus required></label>
<button>Sign in</button></form>
<p><code>schedctl token create NAME --role read</code> makes a token,
<code>schedctl token link</code> a link that signs in once.</p>"""
_IN = """<p>You are signed in as {name}, with role {role}, for twelve hours in this browser.</p>
<p><a href="/v1/status">Status</a> · <a href="/v1/jobs">Jobs</a> · <a href="/v1/runs">Runs</a></p>
<form method="post" action="/signout"><button>Sign out</button></form>"""


async def sign_in_page(request: Request) -> Response:
    """The form, or, with the `code` of a one-time link, the cookie."""
    gate = backend_of(request).gate
    code = CODE.read(request)
    if code:
        made = await to_thread.run_sync(gate.redeem, code)
        if made is None:
            return _page(_ask("This link was used already, or is older than ten minutes."), 401)
        return _signed_in(request, *made)
    caller = caller_of(request)
    if caller.role is not None:
        return _page(_IN.format(name=escape(caller.name), role=caller.role))
    return _page(_ask("What jobs print, carry and answer is shown to those who hold a token."))


async def sign_in(request: Request) -> Response:
    """Takes the form's `token`; the answer sets the cookie."""
    raw = await read_body(request, FORM_LIMIT, (FORM,))
    try:
        token = parse_qs(raw.decode("latin-1"), max_num_fields=10).get("token", [""])[0].strip()
    except ValueError:
        raise Malformed("this is not the form of this page") from None
    gate = backend_of(request).gate
    if gate.stale(missed=gate.recall(token) is None):
        await to_thread.run_sync(gate.refresh)
    made = await to_thread.run_sync(gate.sign_in, token)
    if made is None:
        return _page(_ask("This token is not known here: it was revoked, has expired, or never was."), 401)
    return _signed_in(request, *made)


async def sign_out(request: Request) -> Response:
    """Ends the browser's session."""
    secret = session_of(request.scope)
    if secret is not None:
        await to_thread.run_sync(backend_of(request).gate.sign_out, secret)
    answer = _page(_ask("You are signed out."))
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _signed_in(request: Request, session: Token, secret: str) -> Response:
    answer = _page(_IN.format(name=escape(session.name), role=session.role))
    assert session.expires_at is not None
    age = round((session.expires_at - session.created_at).total_seconds())
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    answer.set_cookie(COOKIE, secret, max_age=age, path="/", secure=secure, httponly=True, samesite="strict")
    return answer


def _ask(said: str) -> str:
    return _ASK.format(said=escape(said))


def _page(body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_PAGE.format(body=body), status, headers=SECURITY)


operations = [
    Operation("GET", "/signin", sign_in_page, Access.ANYBODY, TEXT, query=(CODE,), media="text/html"),
    Operation("POST", "/signin", sign_in, Access.ANYBODY, TEXT, body=SIGN_IN, media="text/html"),
    Operation("POST", "/signout", sign_out, Access.ANYBODY, TEXT, media="text/html"),
]
