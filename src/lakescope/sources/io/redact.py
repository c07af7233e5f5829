"""Taking secrets out of what is stored, shown or logged. No module but this one knows what a secret looks like.

A URI may carry credentials in three places: before the host (``s3://KEY:SECRET@bucket``), in its query
(``?sig=...``, ``?X-Amz-Signature=...``), and, at Spark Connect, behind semicolons (``sc://host/;token=...``). All
three go as a whole: which option is a secret differs from service to service, and a list of their names would miss
one. What Azure has before the host (``abfss://container@account``) is the name of a container, and stays, unless a
password follows it. Errors of libraries also quote settings (``password=...``, ``Authorization: Bearer ...``): there
the value goes.
"""

from __future__ import annotations

import re

from lakescope.sources.databases import secrets

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-:]+://")
#: User information of a URI. A secret may hold slashes; what looks like ``host:port/`` is none. All lengths are bounded
#: here and below: texts may quote a hostile file, and must not take long.
USER = re.compile(r"(://)([^\s'\"@/:?]{0,2000}+)(:(?!\d{1,9}(?:[/?]|$))[^\s'\"@]{0,2000}+)?@")
#: Schemes of Azure, at the end of what is before ``://``.
_AZURE = re.compile(r"(?<![A-Za-z0-9+.\-])(?:abfss?|wasbs?)$", re.IGNORECASE)
_LONGEST_SCHEME = len("abfss")
#: A URI within a text.
_WITHIN = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,30}://[^\s'\"<>`]+")
#: User information of a URI that went through a path, which takes one of two slashes away.
_COLLAPSED = re.compile(r"\b([A-Za-z][A-Za-z0-9+.\-]{1,30}:/)[^\s'\"@/:?]{0,2000}+:[^\s'\"@]{1,2000}+@")
_QUERY = re.compile(r"\?")
_PARAMETERS = re.compile(r"[;?]")
#: Names of settings whose values are secrets, as libraries and connection strings spell them.
_NAMED = re.compile(
    r"""(?P<name>(?:password|passwd|passphrase|pwd|secret|token|credential|signature|(?:access|account|api|shared)[_.\-]?key)
        [\w.\-]{0,40}+|\bsig)
        (?P<mark>(?:["']\s{0,9}:|["']?\s{0,9}=>?)\s{0,9})
        (?P<value>"[^"]{0,9999}"|'[^']{0,9999}'|[^\s,;&"')\]}]+)""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9+/=._~\-]{8,}", re.IGNORECASE)
_HIDDEN = "***"

#: What is before the host of a URI, and what comes after its path.
Secret = tuple[str, str]
NO_SECRET: Secret = ("", "")


def without_secrets(uri: str) -> str:
    """A URI without user information, query and parameters; a path, which has none of them, stays what it is."""
    return parted(uri)[0]


def parted(uri: str) -> tuple[str, Secret]:
    """A URI without its secrets, and these: what was before the host and what comes after the path."""
    if (scheme := _SCHEME.match(uri)) is None:
        return uri, NO_SECRET
    user = USER.match(uri, scheme.end() - len("://"))
    begin = user.end() if user and not _is_container(user) else scheme.end()
    tail = (_PARAMETERS if scheme[0].lower() == "sc://" else _QUERY).search(uri, begin)
    end = tail.start() if tail else len(uri)
    return scheme[0] + uri[begin:end], (uri[scheme.end() : begin], uri[end:])


def _is_container(user: re.Match[str]) -> bool:
    """Whether what is before the host of a URI is no secret but a part of the address."""
    before = user.string[max(0, user.start() - _LONGEST_SCHEME - 1) : user.start()]
    return user[3] is None and _AZURE.search(before) is not None


def _without_user(user: re.Match[str]) -> str:
    return user[0] if _is_container(user) else user[1]


def whole(bare: str, secret: Secret) -> str:
    """The URI that :func:`parted` took apart."""
    begin = bare.find("://") + len("://")
    return bare[:begin] + secret[0] + bare[begin:] + secret[1] if secret != NO_SECRET else bare


def scrub(text: str) -> str:
    """A text without the secrets of the URIs and settings it quotes, and without passwords that are known here."""
    pieces, end = [], 0
    # The user information of a URI goes first: a secret may hold what would end a URI.
    bare = _COLLAPSED.sub(r"\1", USER.sub(_without_user, secrets.hide(text)))
    for match in _WITHIN.finditer(bare):
        pieces += [_without_settings(bare[end : match.start()]), without_secrets(match[0])]
        end = match.end()
    return "".join([*pieces, _without_settings(bare[end:])])


def _without_settings(text: str) -> str:
    hidden = _NAMED.sub(lambda match: f"{match['name']}{match['mark']}{_HIDDEN}", text)
    return _BEARER.sub(rf"\1 {_HIDDEN}", hidden)
