"""Hostile lakes and careless surroundings: secrets stay out of what is kept, other people out of the index."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.sources.redact import scrub, without_secrets

# Secrets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "bare"),
    [
        ("s3://KEY:se/cr+et@bucket/x.csv", "s3://bucket/x.csv"),
        ("s3://bucket/a b.csv?secret_key=S and more", "s3://bucket/a b.csv"),
        ("https://account.blob.host/c/x.csv?sv=2024&sig=abc%3D", "https://account.blob.host/c/x.csv"),
        ("https://b.s3.host/x?X-Amz-Credential=A&X-Amz-Signature=0f", "https://b.s3.host/x"),
        ("https://ghp_token@host/x.csv", "https://host/x.csv"),
        ("postgresql://me:p?w@host:5432/db?sslmode=require&password=p", "postgresql://host:5432/db"),
        ("postgresql://me:p:w@host/db", "postgresql://host/db"),
        ("jdbc:postgresql://host/db?user=me&password=p", "jdbc:postgresql://host/db"),
        ("sc://host:15002/;token=abc;user_id=me", "sc://host:15002/"),
        ("s3://bucket/token=abc/part;password=x.csv", "s3://bucket/token=abc/part;password=x.csv"),
        ("https://host:8080?sig=a@b", "https://host:8080"),
        ("/local/token=abc/what?.csv", "/local/token=abc/what?.csv"),
        ("spark:db.table", "spark:db.table"),
    ],
)
def test_a_uri_without_secrets(uri: str, bare: str) -> None:
    assert without_secrets(uri) == bare
    assert without_secrets(bare) == bare


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot open 's3://K:S@b/x?y=1' now", "cannot open 's3://b/x' now"),
        ("403 for https://h/x?sig=S (https://u:S@h/y)", "403 for https://h/x (https://h/y)"),
        ("connection host=h password=S dbname=d failed", "connection host=h password=*** dbname=d failed"),
        ("AccountName=a;AccountKey=S==;x=1", "AccountName=a;AccountKey=***;x=1"),
        ("{'aws_secret_access_key': 'S', 'region': 'r'}", "{'aws_secret_access_key': ***, 'region': 'r'}"),
        ("fs.s3a.secret.key=S given", "fs.s3a.secret.key=*** given"),
        ("refused: Authorization: Bearer SSSSSSSSSSSS", "refused: Authorization: Bearer ***"),
        ("unexpected token: '<' in x.json", "unexpected token: '<' in x.json"),
        ("Couldn't read column 'secret' of the table", "Couldn't read column 'secret' of the table"),
    ],
)
def test_a_text_without_secrets(text: str, shown: str) -> None:
    assert scrub(text) == shown


_WORD = st.text("abcXYZ019_-.~", min_size=1, max_size=8)


@settings(deadline=None)
@given(
    scheme=st.sampled_from(["s3", "https", "postgresql", "gs", "abfss"]),
    user=_WORD,
    secret=st.text("abcXYZ+/?:;=%&#", min_size=1, max_size=12).map(lambda text: f"SEKRET{text}"),
    path=st.lists(_WORD, max_size=3),
)
def test_whatever_a_secret_is_made_of_it_goes(scheme: str, user: str, secret: str, path: list[str]) -> None:
    place = "/".join(["host", *path])
    for uri in (f"{scheme}://{user}:{secret}@{place}", f"{scheme}://{place}?{user}={secret}"):
        assert without_secrets(uri) == f"{scheme}://{place}"
        assert "SEKRET" not in scrub(f"cannot read {uri}: no such host")
