"""Tokens, made and taken back on the Unix socket only."""

from __future__ import annotations

from datetime import datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from scheduler.core.access import Access, Role, Token
from scheduler.web.answers import Answer
from scheduler.web.backend import backend_of
from scheduler.web.fields import Body, Duration, Text
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation, author_of
from scheduler.web.present import Shown, when
from scheduler.web.shapes import TEXT, many, record, ref

CREATE = Body(
    (
        Text("name", "Who holds it, or what it is for.", 100, required=True),
        Text("role", "What its holder may do.", of=tuple(Role), required=True),
        Duration("lifetime", "After that it is no longer good; null: it is good until it is revoked."),
    )
)
NOTHING = Body(())


def list_tokens(request: Request) -> Answer:
    """All of them, by age, revoked and expired ones too; never a secret."""
    backend = backend_of(request)
    now = backend.now()
    return Answer({"tokens": [token_json(token, now) for token in backend.gate.all()]})


async def create_token(request: Request) -> Answer:
    """A new token. `secret` is told this once; only a digest of it is kept."""
    backend = backend_of(request)
    body = await CREATE.read(request)

    def create() -> tuple[Token, str]:
        role = Role(body["role"])
        return backend.gate.create(body["name"], role, author=author_of(request), lifetime=body["lifetime"])

    token, secret = await run_in_threadpool(create)
    return Answer({"token": token_json(token, token.created_at), "secret": secret}, status_code=201)


async def revoke_token(request: Request) -> Answer:
    """Ends a token, by its name or id, and what browsers signed in with it."""
    backend = backend_of(request)
    text = plain_name(request.path_params["token"])
    await NOTHING.read(request)
    token = await run_in_threadpool(lambda: backend.gate.revoke(text, author=author_of(request)))
    return Answer({"token": token_json(token, backend.now())})


async def sign_in_link(request: Request) -> Answer:
    """The path that signs a browser in, once, within ten minutes, with role `operate`."""
    await NOTHING.read(request)
    code = backend_of(request).gate.link(author=author_of(request))
    return Answer({"path": f"/signin?code={code}", "address": backend_of(request).address()}, status_code=201)


def token_json(token: Token, now: datetime) -> Shown:
    return {
        "id": token.id,
        "name": token.name,
        "role": str(token.role),
        "created_at": when(token.created_at),
        "author": token.author,
        "expires_at": when(token.expires_at),
        "revoked_at": when(token.revoked_at),
        "used_at": when(token.used_at),
        "live": token.live(now),
    }


operations = [
    Operation("GET", "/v1/tokens", list_tokens, Access.LOCAL, record(tokens=many(ref("Token")))),
    Operation(
        "POST",
        "/v1/tokens",
        create_token,
        Access.LOCAL,
        record(token=ref("Token"), secret=TEXT),
        body=CREATE,
        status=201,
    ),
    Operation(
        "POST", "/v1/tokens/{token}/revoke", revoke_token, Access.LOCAL, record(token=ref("Token")), body=NOTHING
    ),
    Operation(
        "POST",
        "/v1/sign-in-links",
        sign_in_link,
        Access.LOCAL,
        record(path=TEXT, address=TEXT),
        body=NOTHING,
        status=201,
    ),
]
