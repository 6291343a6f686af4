"""A Lease object has one holder, whatever the order of requests, silences and clocks."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ops.errors import SettingsError
from ops.kubernetes import ApiServer, KubernetesLease, in_cluster
from tests.support.lease_server import LeaseServer


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[LeaseServer]:
    with LeaseServer() as running:
        yield running


@pytest.fixture
def api(server: LeaseServer, tmp_path: Path) -> ApiServer:
    (tmp_path / "token").write_text("token-1\n")
    return ApiServer(server.url, "memory", tmp_path / "token")


def lease(api: ApiServer, name: str, clock: Clock) -> KubernetesLease:
    return KubernetesLease(api, "comemory", name, duration=30, clock=clock)


def test_the_first_holds_it_and_the_second_waits(server: LeaseServer, api: ApiServer) -> None:
    clock = Clock()
    first, second = lease(api, "a", clock), lease(api, "b", clock)
    assert [first.hold(), second.hold(), first.hold(), second.hold()] == [True, False, True, False]
    assert server.holder() == "a"


def test_a_silent_holder_is_replaced_after_its_duration_and_learns_of_it(
    server: LeaseServer, api: ApiServer
) -> None:
    clock = Clock()
    first, second = lease(api, "a", clock), lease(api, "b", clock)
    assert first.hold()
    assert not second.hold()
    clock.now = 29
    assert not second.hold()
    clock.now = 31
    assert second.hold()
    assert not first.hold()
    spec = next(iter(server.leases.values()))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


def test_a_holder_that_renews_is_never_replaced(api: ApiServer) -> None:
    clock = Clock()
    first, second = lease(api, "a", clock), lease(api, "b", clock)
    for _ in range(10):
        assert first.hold()
        assert not second.hold()
        clock.now += 25


def test_giving_it_up_lets_the_next_in_at_once(api: ApiServer) -> None:
    clock = Clock()
    first, second = lease(api, "a", clock), lease(api, "b", clock)
    assert first.hold()
    assert not second.hold()
    first.release()
    assert second.hold()


def test_without_an_api_server_the_holder_stops_before_another_could_begin(
    server: LeaseServer, api: ApiServer
) -> None:
    clock = Clock()
    first, second = lease(api, "a", clock), lease(api, "b", clock)
    assert first.hold()
    assert not second.hold()
    server.status = 503
    clock.now = 19
    assert first.hold()
    clock.now = 21
    assert not first.hold()
    server.status = None
    assert not second.hold()
    clock.now = 31
    assert second.hold()


def test_of_many_who_try_at_once_one_wins(server: LeaseServer, api: ApiServer) -> None:
    leases = [lease(api, f"p{number}", Clock()) for number in range(8)]
    barrier = threading.Barrier(8)
    held: list[str] = []

    def race(number: int) -> None:
        barrier.wait()
        if leases[number].hold():
            held.append(f"p{number}")

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held == [server.holder()]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 5.0, 19.0, 31.0])), max_size=12))
def test_never_two_holders(api: ApiServer, server: LeaseServer, steps: list[tuple[int, float]]) -> None:
    server.leases.clear()
    clock = Clock()
    leases = [lease(api, f"p{number}", clock) for number in range(3)]
    believes: dict[int, float] = {}
    for who, later in steps:
        clock.now += later
        # Who has not asked for two thirds of the duration no longer counts on it: the keeper asks every third.
        believes = {number: since for number, since in believes.items() if clock.now - since < 20}
        if leases[who].hold():
            believes[who] = clock.now
        else:
            believes.pop(who, None)
        assert len(believes) <= 1


def test_a_renewed_token_is_read_anew(server: LeaseServer, api: ApiServer) -> None:
    first = lease(api, "a", Clock())
    assert first.hold()
    server.token = "token-2"
    with pytest.raises(
        SettingsError, match="may not get, create and update Lease 'comemory' in namespace 'memory'"
    ):
        first.hold()
    assert api.token_file is not None
    api.token_file.write_text("token-2")
    assert first.hold()


def test_outside_a_cluster_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError, match="works in a pod with a service account token only"):
        in_cluster(account=tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("memory\n")
    found = in_cluster(account=tmp_path)
    assert (found.url, found.namespace) == ("https://[fd00::1]:6443", "memory")
