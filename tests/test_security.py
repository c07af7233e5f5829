"""Hostile lakes and careless surroundings: secrets stay out of what is kept, other people out of the index."""

from __future__ import annotations

import os
import stat
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.sources.model import Problem
from lakescope.sources.redact import scrub, without_secrets
from lakescope.store.index import Index
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter

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


# Whose index it is ----------------------------------------------------------------------------------------------------


def _published(path: Path, *, share: bool = False) -> None:
    with IndexWriter(path, share=share) as writer:
        shard = ShardWriter(writer.staging, "problems")
        shard.add(asdict(Problem("t", "info", "nested", "as good as any")))
        file = shard.close()
        assert file is not None
        writer.publish([file], version="test", sources=[], summary={})


def _rights(path: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in [path, *path.rglob("*")] if each.name != ".lock"}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_an_index_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "there.idx").mkdir()
        for name in ("new.idx", "there.idx"):
            for _ in range(2):
                _published(tmp_path / name)
                assert _rights(tmp_path / name) == {0o700, 0o600}
                index = Index(tmp_path / name)
                index.remember("found", {})
                index.remember_arrays("more", {"a": np.zeros(3)})
                assert _rights(tmp_path / name) == {0o700, 0o600}
        with IndexWriter(tmp_path / "new.idx") as writer:
            assert _rights(writer.staging.parent) == {0o700}
    finally:
        os.umask(before)


def test_an_index_that_is_shared_stays_so(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        _published(tmp_path / "x.idx", share=True)
        assert _rights(tmp_path / "x.idx") == {0o750, 0o640}
        os.umask(0o077)
        _published(tmp_path / "x.idx")
        assert _rights(tmp_path / "x.idx") == {0o750, 0o640}
        (tmp_path / "x.idx").chmod(0o700)
        _published(tmp_path / "x.idx")
        assert _rights(tmp_path / "x.idx") == {0o700, 0o600}
    finally:
        os.umask(before)
