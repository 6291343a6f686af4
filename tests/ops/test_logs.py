"""Log lines: JSON that parses, the level asked for, and never a secret."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from pydantic import SecretStr

from ops import logs
from ops.settings import LogSettings

KEY = "s3cret-key"


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers, root.level = before
    structlog.reset_defaults()


def test_an_event_is_one_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings())
    logs.get(job="ttl").info("batch", done=3, collection="cm_text_4_v1")
    logs.get().debug("not shown")
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["event"], event["job"], event["done"], event["level"]) == ("batch", "ttl", 3, "info")
    assert event["timestamp"].endswith("Z")


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_secret_is_masked_wherever_it_stands(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings(format=form), [SecretStr(KEY), None, SecretStr("")])
    logs.get(url=f"http://x/?key={KEY}").warning("run", problems=[f"refused {KEY}"], more={"deep": (KEY,)})
    logging.getLogger("uvicorn.error").error("header api-key: %s", KEY)
    try:
        int(KEY)
    except ValueError:
        logging.getLogger("asyncio").exception("trouble")
    said = capsys.readouterr().err
    assert KEY not in said
    assert said.count(logs.MASK) >= 5


def test_libraries_speak_only_of_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings())
    logging.getLogger("httpx").info("GET /collections")
    logging.getLogger("apscheduler.scheduler").warning("maximum number of running instances reached")
    logging.getLogger("httpx").error("trouble")
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == ["trouble"]
