"""Settings: defaults, and which collections are looked after."""

from datetime import timedelta

from pydantic import SecretStr

from ops.settings import CollectionsSettings, Settings


def test_everything_has_a_default() -> None:
    settings = Settings()
    assert settings.qdrant.url == "http://127.0.0.1:6333"
    assert settings.ttl.exempt_tags == ("legal_hold",)
    assert settings.ttl.schedule.every == timedelta(hours=1)


def test_only_our_collections_are_looked_after() -> None:
    ours = Settings().collections.ours
    assert ours("cm_text_1024_v1")
    assert not ours("helion_docs")
    assert not ours("cm_audio_1024_v1")
    named = CollectionsSettings(include=("mine", "other"), exclude=("other",)).ours
    assert (named("mine"), named("other"), named("cm_text_1024_v1")) == (True, False, False)


def test_aliases_are_followed_to_what_they_name() -> None:
    settings = CollectionsSettings(include=("now", "mine"), exclude=("held",))
    followed = settings.followed({"now": "cm_text_4_v2", "held": "mine", "another": "cm_text_4_v1"})
    assert [followed.ours(name) for name in ("cm_text_4_v2", "mine", "cm_text_4_v1")] == [True, False, False]


def test_a_secret_is_masked() -> None:
    assert "s3cret" not in repr(Settings(qdrant={"api_key": SecretStr("s3cret")}))
