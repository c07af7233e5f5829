"""What a server refuses on top of what a library refuses, and the HTTP status of every error."""

from __future__ import annotations

from http import HTTPStatus

from lakescope.errors import BadRequest, LakescopeError, NotFound, SourceError


class Refused(LakescopeError):
    """A request that is not served; ``status`` says why in HTTP, ``code`` in a word."""

    def __init__(self, status: int, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.status, self.code, self.message, self.hint)


def _rebuild(status: int, code: str, message: str, hint: str | None) -> Refused:
    return Refused(status, code, message, hint=hint)


def late(seconds: float) -> Refused:
    """Time was up."""
    message = f"no answer within {seconds:g} seconds"
    return Refused(
        HTTPStatus.GATEWAY_TIMEOUT, "late", message, hint="ask for less: of fewer columns, or of a smaller file"
    )


def busy(what: str) -> Refused:
    """Too much is going on."""
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, "busy", what, hint="try again in a moment")


def too_large(limit: str) -> Refused:
    """More than is taken."""
    message = f"the file is larger than {limit}"
    hint = "send a part of it: some thousand rows are enough to search with; --max-upload allows more"
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", message, hint=hint)


def cancelled() -> Refused:
    """Somebody asked for it to end."""
    return Refused(HTTPStatus.CONFLICT, "cancelled", "the work was cancelled", hint="ask again")


def displaced() -> Refused:
    """Somebody who has less waiting took the place."""
    message = "the question gave way to one of somebody who has fewer waiting"
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, "displaced", message, hint="ask again in a moment, for less at once")


class FromElsewhere(Refused):
    """Work that a link of another site asks for: whoever followed it is asked whether they want it."""

    def __reduce__(self) -> tuple[object, ...]:
        return link_of_another_site, ()


def link_of_another_site() -> FromElsewhere:
    """A link of another site starts no work."""
    message, hint = "a link of another site starts no work here", "open the address by hand"
    return FromElsewhere(HTTPStatus.FORBIDDEN, "foreign-origin", message, hint=hint)


def code_of(error: LakescopeError) -> str:
    """A word for an error that programs can rely on."""
    if isinstance(error, Refused | SourceError):
        return error.code
    if isinstance(error, NotFound):
        return "not-found"
    return "bad-request" if isinstance(error, BadRequest) else "failure"


def status_of(error: LakescopeError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, NotFound):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, SourceError):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    return HTTPStatus.BAD_REQUEST if isinstance(error, BadRequest) else HTTPStatus.INTERNAL_SERVER_ERROR


def told(error: LakescopeError) -> dict[str, str | None]:
    """An error as plain data."""
    return {"code": code_of(error), "message": error.message, "hint": error.hint}


def untold(data: dict[str, str | None], status: int) -> Refused:
    """The error that :func:`told` told, in another process."""
    return Refused(HTTPStatus(status), str(data["code"]), str(data["message"]), hint=data["hint"])
