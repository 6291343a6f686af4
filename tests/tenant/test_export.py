"""Exporting: every point of the tenant, once, as stored; a run that was killed is gone on with."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from comemory.tenancy import Subject
from ops.budget import Budget
from ops.errors import SettingsError
from ops.report import JobReport
from ops.tenant.export import Wanted, export
from tests.conftest import ROOT, Endpoint
from tests.support.fault_proxy import Call, FaultProxy, Status
from tests.support.memory import memory
from tests.tenant.server import INDEXES, Tenancy, payload, put

pytestmark = pytest.mark.embedded_only("exports from every collection of its server")


@pytest.fixture(scope="module")
def endpoint(start_endpoint: Callable[..., Endpoint]) -> Endpoint:
    return start_endpoint()


@pytest.fixture(scope="module")
def client(endpoint: Endpoint) -> Iterator[QdrantClient]:
    made = QdrantClient(url=endpoint.url, timeout=60, check_compatibility=False)
    yield made
    made.close()


@pytest.fixture
def collections(client: QdrantClient) -> Iterator[tuple[str, str]]:
    """Two collections of memory, by name; each with 30 points, of which 15 are of t_a."""
    with memory(client, indexes=INDEXES) as one, memory(client, indexes=INDEXES) as two:
        first, second = sorted((one.name, two.name))
        for name in (first, second):
            keys = [number if number % 3 else str(uuid.UUID(int=number)) for number in range(30)]
            scopes = ("docs", "memory")
            put(
                client, name,
                {
                    key: payload("t_a" if place % 2 else "t_ab", scope=scopes[place % 4 // 2], place=place)
                    for place, key in enumerate(keys)
                },
            )  # fmt: skip
        yield first, second


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "t_a.jsonl"


def run(
    url: str,
    output: Path,
    *names: str,
    tenant: str = "t_a",
    owner: str | None = None,
    vectors: bool = False,
    page: int = 4,
    retry_for: float = 20,
    stop: threading.Event | None = None,
) -> JobReport:
    tenancy = Tenancy(url, output.parent)
    with tenancy.session(retry_for=retry_for) as session:
        context = tenancy.context(session, budget=Budget(stop=stop))
        return export(context, Wanted(Subject(tenant, owner), names, vectors), output, page=page)[0]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def manifest(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_name(f"{path.name}.manifest.json").read_text())
    return found


def stored(client: QdrantClient, name: str) -> list[dict[str, Any]]:
    """What the server says itself, in order of id."""
    points, _ = client.scroll(name, limit=1000, with_payload=True)
    return [{"collection": name, "id": one.id, "payload": one.payload} for one in points]


def test_every_point_of_the_tenant_once_in_order_as_stored(
    client: QdrantClient, endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    report = run(endpoint.url, output)
    found = lines(output)
    expected = [one for name in collections for one in stored(client, name) if one["payload"]["tenant_id"] == "t_a"]
    assert found == expected and len(found) == 30
    assert (report.outcome, report.handled, report.found, report.skipped) == ("success", 30, 30, 0)
    for path in (output, output.with_name("t_a.jsonl.manifest.json")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(path.name for path in output.parent.iterdir()) == ["t_a.jsonl", "t_a.jsonl.manifest.json"]
    said = manifest(output)
    content = output.read_bytes()
    assert (said["sha256"], said["bytes"]) == (hashlib.sha256(content).hexdigest(), len(content))
    assert (said["lines"], said["tenant"], said["owner"], said["vectors"]) == (30, "t_a", None, False)
    assert (said["url"], said["notes"]) == (endpoint.url, [])
    scopes = {scope: sum(one["payload"]["scope"] == scope for one in found) // 2 for scope in ("docs", "memory")}
    assert said["points"] == [
        {"collection": name, "count": 15, "scopes": scopes, "there_at_the_end": 15, "left_out": 0}
        for name in collections
    ]


def test_vectors_of_every_kind_are_as_the_server_has_them(
    client: QdrantClient, endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    name = f"cm_mm_4_v{uuid.uuid4().int % 10**8 + 1}"
    dot = models.VectorParams(size=3, distance=models.Distance.DOT)
    many = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    client.create_collection(
        name,
        {"dense": dot, "late": models.VectorParams(size=2, distance=models.Distance.DOT, multivector_config=many)},
        sparse_vectors_config={"words": models.SparseVectorParams()},
    )
    vector: Any = {
        "dense": [0.1, -2.5, 3e-7], "late": [[1.0, 2.0], [0.5, 0.25]],
        "words": models.SparseVector(indices=[3, 70_000], values=[0.5, 0.1]),
    }  # fmt: skip
    odd = {"tenant_id": "t_a", "n": 1.0, "i": 2**53 + 1, "e": [], "z": None, "u": "\u2028\N{SNOWMAN}"}
    try:
        client.upsert(name, [models.PointStruct(id=1, vector=vector, payload=odd)], wait=True)
        client.upsert(name, [models.PointStruct(id=2, vector={"dense": [1, 2, 3]}, payload=odd)], wait=True)
        run(endpoint.url, output, name, vectors=True)
        with Tenancy(endpoint.url, output.parent).session() as session:
            (page,) = session.scroll(name, payload=True, vector=True)
        found = lines(output)
        assert [{key: one[key] for key in ("id", "payload", "vector")} for one in found] == [
            {key: one[key] for key in ("id", "payload", "vector")} for one in page
        ]
        assert found[0]["payload"] == odd and isinstance(found[0]["payload"]["n"], float)
        assert found[0]["vector"] == {**vector, "words": {"indices": [3, 70_000], "values": [0.5, 0.1]}}
        assert list(found[1]["vector"]) == ["dense"]
    finally:
        client.delete_collection(name)


@pytest.mark.parametrize("after", [0, 1, 3, 5, 9])
def test_cut_short_anywhere_and_run_again_it_is_the_same_file(
    endpoint: Endpoint, collections: tuple[str, str], output: Path, after: int
) -> None:
    whole = output.with_name("whole.jsonl")
    run(endpoint.url, whole, vectors=True)
    with FaultProxy(endpoint.url) as proxy:
        proxy.always(Status(503), path="/points/scroll", after=after)
        report = run(proxy.url, output, vectors=True, retry_for=0.05)
        assert report.outcome in ("failed", "partial") and not output.exists()
        partial = output.with_name("t_a.jsonl.partial")
        if after > 3:
            # A half line, as a kill in the middle of a write leaves it.
            partial.write_bytes(partial.read_bytes()[:-7])
        proxy.heal()
        again = run(proxy.url, output, vectors=True)
    assert again.outcome == "success"
    assert output.read_bytes() == whole.read_bytes()
    theirs, ours = manifest(whole), manifest(output)
    assert [ours[key] for key in ("sha256", "lines", "points")] == [
        theirs[key] for key in ("sha256", "lines", "points")
    ]
    assert len(list(output.parent.iterdir())) == 4


def test_killed_in_the_middle_and_run_again(endpoint: Endpoint, collections: tuple[str, str], output: Path) -> None:
    whole = output.with_name("whole.jsonl")
    run(endpoint.url, whole, page=500)
    with FaultProxy(endpoint.url) as proxy:
        held = threading.Event()
        # The first collection is done when the second one's first page is held back for ever.
        proxy.script(Call(held.wait), path=f"{collections[1]}/points/scroll")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("COMEMORY_", "QDRANT_"))}
        environment["COMEMORY_QDRANT__URL"] = proxy.url
        command = [sys.executable, "-m", "ops", "tenant", "export", "t_a", "--output", str(output)]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
        while not proxy.seen("POST", f"{collections[1]}/points/scroll") and process.poll() is None:
            time.sleep(0.05)
        process.kill()
        _, said = process.communicate()
        held.set()
        partial = output.with_name("t_a.jsonl.partial")
        assert partial.exists() and not output.exists(), said.decode()
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        assert len(lines(partial)) == 15
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "Went on from where" in done.stderr) == (0, True), done.stderr
    assert output.read_bytes() == whole.read_bytes()


def test_other_options_do_not_go_on(endpoint: Endpoint, collections: tuple[str, str], output: Path) -> None:
    stop = threading.Event()
    with FaultProxy(endpoint.url) as proxy:
        proxy.script(Call(stop.set), path="/points/scroll", after=3)
        report = run(proxy.url, output, stop=stop)
        assert (report.stopped, report.outcome) == ("asked to stop", "partial")
        begun = output.with_name("t_a.jsonl.partial").read_bytes()
        for other in ({"vectors": True}, {"owner": "agt_a"}, {"tenant": "t_b"}):
            with pytest.raises(SettingsError, match="was begun with other options"):
                run(proxy.url, output, **other)
        with pytest.raises(SettingsError, match=r"begun with other options \(collections: \[\]\)"):
            run(proxy.url, output, collections[0])
        with pytest.raises(SettingsError, match=r"begun with other options \(url: "):
            run(endpoint.url, output)
        assert output.with_name("t_a.jsonl.partial").read_bytes() == begun
        assert run(proxy.url, output).outcome == "success"


def test_a_file_that_is_there_is_not_touched(
    endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    output.write_text("mine")
    with pytest.raises(SettingsError, match="is there already"):
        run(endpoint.url, output)
    assert output.read_text() == "mine"
    with pytest.raises(SettingsError, match=r"--output: cannot write .*: No such file or directory"):
        run(endpoint.url, output.parent / "none" / "x.jsonl")
    with pytest.raises(SettingsError, match="--collection: 'nowhere' is not on the server"):
        run(endpoint.url, output.with_name("other"), "nowhere")
    assert [path.name for path in output.parent.iterdir()] == ["t_a.jsonl"]


def test_a_second_run_at_the_same_time_is_refused(
    endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    refused: list[str] = []

    def second() -> None:
        with pytest.raises(SettingsError) as why:
            run(endpoint.url, output)
        refused.append(str(why.value))

    with FaultProxy(endpoint.url) as proxy:
        proxy.script(Call(second), path="/points/scroll", after=2)
        assert run(proxy.url, output).outcome == "success"
    assert "another run is writing" in refused[0]
    assert len(lines(output)) == 30


def test_what_comes_and_goes_meanwhile_is_told(
    client: QdrantClient, endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    first, _ = collections
    with FaultProxy(endpoint.url) as proxy:
        # Four pages are written; the fifth request is the comparison's.
        late = Call(lambda: put(client, first, {0: payload("t_a")}))
        proxy.script(late, path=f"{first}/points/scroll", after=4)
        report = run(proxy.url, output)
    assert report.outcome == "partial"
    (problem,) = report.problems
    assert (
        problem.collection == first
        and "15 are in the file" in problem.message
        and "16 are there now" in problem.message
    )
    assert manifest(output)["notes"] == [problem.message]
    assert [one["there_at_the_end"] for one in manifest(output)["points"]] == [16, 15]
    assert len(lines(output)) == 30


def test_what_names_two_tenants_is_left_out_and_told(
    client: QdrantClient, endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    put(client, collections[0], {100: payload(["t_a", "t_b"]), 101: payload(["t_a"])})
    report = run(endpoint.url, output, collections[0])
    assert {100, 101} & {one["id"] for one in lines(output)} == {101}
    assert (report.outcome, report.skipped) == ("partial", 1)
    assert "such as 100: not in the file" in report.problems[0].message
    assert manifest(output)["points"][0]["left_out"] == 1


def test_an_owner_an_alias_and_a_collection_named_twice(
    client: QdrantClient, endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    first, _ = collections
    put(client, first, {100: payload("t_a", owner_id="agt_ab"), 101: payload("t_b", owner_id="agt_ab")})
    alias = models.CreateAlias(collection_name=first, alias_name="cm_text_4")
    client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    run(endpoint.url, output, "cm_text_4", first, owner="agt_ab")
    assert [one["id"] for one in lines(output)] == [100]
    assert manifest(output)["collections"] == sorted(["cm_text_4", first])
    assert [one["collection"] for one in manifest(output)["points"]] == [first]


def test_a_collection_that_goes_away_meanwhile_is_told(
    client: QdrantClient, endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    _, second = collections
    with FaultProxy(endpoint.url) as proxy:
        proxy.script(Call(lambda: client.delete_collection(second)), path=f"{second}/points/scroll")
        report = run(proxy.url, output)
    assert (report.outcome, len(lines(output))) == ("partial", 15)
    assert f"'{second}' does not exist" in manifest(output)["notes"][0]
    assert manifest(output)["points"][1]["there_at_the_end"] is None


def test_a_collection_made_meanwhile_is_told(
    client: QdrantClient, endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    late = f"cm_text_4_v{uuid.uuid4().int % 10**8 + 1}"
    dense = {"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)}
    with FaultProxy(endpoint.url) as proxy:
        proxy.script(Call(lambda: client.create_collection(late, dense)), path=f"{collections[1]}/points/scroll")
        try:
            report = run(proxy.url, output)
        finally:
            client.delete_collection(late)
    assert (report.outcome, len(lines(output))) == ("partial", 30)
    assert manifest(output)["notes"] == [f"'{late}' was made after the export began; it is not in the file."]


def test_a_full_disk_is_a_sentence_and_the_same_command_goes_on(
    endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COMEMORY_", "QDRANT_"))}
    environment["COMEMORY_QDRANT__URL"] = endpoint.url
    # No file may grow beyond 4 kB; the lines of a collection are more.
    command = f"ulimit -f 4; exec {sys.executable} -m ops tenant export t_a --output {output}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "defect" in done.stderr) == (1, False), done.stderr
    assert "File too large. Run again to go on." in done.stderr and "is not complete" in done.stderr
    assert not output.exists()
    assert run(endpoint.url, output, page=500).outcome == "success"
    assert len(lines(output)) == 30


def test_a_tenant_that_is_not_there_has_an_empty_file(
    endpoint: Endpoint, collections: tuple[str, str], output: Path
) -> None:
    report = run(endpoint.url, output, tenant="t_")
    assert (report.outcome, output.read_bytes(), manifest(output)["lines"]) == ("success", b"", 0)
