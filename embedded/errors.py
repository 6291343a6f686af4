"""What an answer other than 200 says, in the words and the JSON form of a Qdrant server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


class ApiError(Exception):
    """An error for the caller: an HTTP status and the text under `status.error`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class WrongInput(ApiError):
    """400: the request is understood and cannot be carried out as it stands."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(status, f"Wrong input: {message}")


class UnknownVector(WrongInput):
    """400: no vector of that name. A server refuses such a write after it has given it a number."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Not existing vector name error: {name}")


class BadRequest(ApiError):
    """400: the request breaks a rule of the collection (strict mode) or is empty."""

    def __init__(self, message: str) -> None:
        super().__init__(400, f"Bad request: {message}")


class NotFound(ApiError):
    """404: the collection or the point is not there."""

    def __init__(self, message: str) -> None:
        super().__init__(404, f"Not found: {message}")

    @classmethod
    def collection(cls, name: str) -> NotFound:
        """The collection named is neither a collection nor an alias."""
        return cls(f"Collection `{name}` doesn't exist!")


class Forbidden(ApiError):
    """403: the key is good, and it does not allow this."""

    def __init__(self, message: str) -> None:
        super().__init__(403, f"Forbidden: {message}")


class FormatError(ApiError):
    """400: the body is not JSON, or JSON of another shape; `body` places the error as the server does."""

    def __init__(self, message: str, body: bytes | None = None) -> None:
        place = ""
        if body is not None:
            lines = body.split(b"\n")
            place = f" at line {len(lines)} column {len(lines[-1])}"
        super().__init__(400, f"Format error in JSON body: {message}{place}")


class ValidationFailed(ApiError):
    """422: the shape is right and a value is out of its range."""

    def __init__(self, field: str, problem: str, where: str = "JSON body") -> None:
        super().__init__(422, f"Validation error in {where}: [{field}: {problem}]")


class Unsupported(ApiError):
    """501: a Qdrant server does this and the embedded endpoint does not."""

    def __init__(self, what: str) -> None:
        super().__init__(501, f"Not supported by the embedded endpoint: {what}. Use a Qdrant server for it.")


def refusal(error: BaseException) -> ApiError | None:
    """The answer to an error that the engine raised outside `engine_errors`; None for a defect of our own.

    An argument that does not convert carries the engine's mark: its name in front, or in a note. A panic is no
    `Exception`, and would otherwise reach the web server.
    """
    if isinstance(error, ApiError):
        return error
    if type(error).__name__ == "PanicException":
        return ApiError(500, f"Service internal error: {error}")
    text = str(error).partition("\n")[0]
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("while processing ")]
    if not notes and not (isinstance(error, TypeError) and text.startswith("argument '")):
        return None
    where = f"{notes[-1].removeprefix('while processing ')}: " if notes else ""
    return FormatError(f"{where}{text}")


_NOT_FOUND = re.compile(r"^(No point with id |Point with id .* does not exists!)")
_INTERNAL = re.compile(r"(?i)^(service|io|internal|out of memory|rocksdb|task panicked|panic|shard is closed)")


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise the engine's refusals as the server words them.

    The engine raises plain `Exception` with a text for every refusal, and `TypeError` or `ValueError` where an
    argument does not convert.
    """
    try:
        yield
    except ApiError:
        raise
    except Exception as error:
        text = str(error)
        if _NOT_FOUND.match(text):
            raise NotFound(text) from error
        if _INTERNAL.match(text):
            raise ApiError(500, f"Service internal error: {text}") from error
        raise WrongInput(text) from error
