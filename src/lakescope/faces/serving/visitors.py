"""Who asks: a visitor by a secret of their own, the address they come from, and what each of them may take up.

What everybody shares (places in a queue, room for files) is shared out by one rule: where there is no room, whoever has
most gives way to whoever would still have less, addresses first, then the visitors of an address. A visitor costs
nothing (a cookie, or none), an address does: so many visitors of one address do not outweigh a visitor of another.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

#: Leading bits of an IPv6 address that count as one address: a home or a machine is given as many.
_NETWORK = 64

T = TypeVar("T")


class Owner(NamedTuple):
    """Who something is charged to."""

    address: str
    visitor: str


NOBODY = Owner("", "")


class Visitor(str):
    """The secret that names a visitor, and what is known of the request it came with.

    Who comes without a secret is given one with the answer. Until it is sent back it costs nothing to be somebody else
    with every request: ``fresh`` visitors of an address are charged as one.
    """

    address: str
    fresh: bool
    #: Whether a link of another site led here: such a request looks at what is there, and starts nothing.
    foreign: bool

    def __new__(cls, secret: str, address: str = "", *, fresh: bool = False, foreign: bool = False) -> Visitor:
        """A visitor who comes from an address."""
        visitor = super().__new__(cls, secret)
        visitor.address, visitor.fresh, visitor.foreign = address, fresh, foreign
        return visitor

    @property
    def owner(self) -> Owner:
        """Who pays for what this visitor asks for."""
        return Owner(self.address, "" if self.fresh else str(self))


def owner_of(visitor: str) -> Owner:
    """Who pays for what a visitor asks for; of a mere name no address is known."""
    return visitor.owner if isinstance(visitor, Visitor) else Owner("", visitor)


def is_foreign(visitor: str) -> bool:
    """Whether a link of another site led a visitor here."""
    return isinstance(visitor, Visitor) and visitor.foreign


def plain_address(text: str) -> str:
    """An address without a port, a zone or brackets, IPv4 never as IPv6; empty if it is none."""
    host = text.rpartition(":")[0] if text.count(":") == 1 or (text.startswith("[") and "]:" in text) else text
    try:
        known = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return ""
    return str(getattr(known, "ipv4_mapped", None) or known)


@lru_cache(1_000)
def address_group(text: str) -> str:
    """What an address is counted by: IPv4 as it is, IPv6 by its network, what is none as it is."""
    address = plain_address(text)
    return str(ipaddress.ip_network((address, _NETWORK), strict=False)) if ":" in address else address or text


class Claim(NamedTuple, Generic[T]):
    """What takes up room: how much, for whom, and what it is."""

    owners: tuple[Owner, ...]
    size: int
    item: T


def giving_way(claims: Sequence[Claim[T]], new: Claim[None], *, room: int, each: int) -> list[T] | None:
    """What gives way to a new claim, of claims that come in the order in which they would; None if the new one has to.

    ``room`` is for all, ``each`` for an address. What several owners share stays unless each of them has more than the
    owner of the new claim would.
    """
    shares = _Shares(claims, new)
    left, going = list(claims), list[T]()
    while not shares.fit(room, each):
        crowded = shares.of_address > each
        candidates = [claim for claim in left if all(shares.has_more(owner, crowded) for owner in claim.owners)]
        if not candidates:
            return None
        heaviest = max(candidates, key=shares.weight)
        shares.drop(heaviest)
        left.remove(heaviest)
        going.append(heaviest.item)
    return going


class _Shares:
    """What each address and each visitor has, and what the owner of a new claim would have with it."""

    def __init__(self, claims: Sequence[Claim[T]], new: Claim[None]) -> None:
        self._all = 0
        self._addresses: Counter[str] = Counter()
        self._visitors: Counter[Owner] = Counter()
        for claim in claims:
            self._count(claim, claim.size)
        (self._newcomer,) = new.owners
        self._size = new.size
        self.of_address = self._addresses[self._newcomer.address] + new.size
        self._of_visitor = self._visitors[self._newcomer] + new.size

    def _count(self, claim: Claim[T], size: int) -> None:
        self._all += size
        for address in {owner.address for owner in claim.owners}:
            self._addresses[address] += size
        for owner in claim.owners:
            self._visitors[owner] += size

    def drop(self, claim: Claim[T]) -> None:
        """Count a claim no more."""
        self._count(claim, -claim.size)
        self.of_address = self._addresses[self._newcomer.address] + self._size
        self._of_visitor = self._visitors[self._newcomer] + self._size

    def fit(self, room: int, each: int) -> bool:
        """Whether there is room for the new claim."""
        return self._all + self._size <= room and self.of_address <= each

    def has_more(self, owner: Owner, crowded: bool) -> bool:
        """Whether somebody has more than the newcomer would; where an address is crowded only its visitors count."""
        if owner.address == self._newcomer.address:
            return self._visitors[owner] > self._of_visitor
        return not crowded and self._addresses[owner.address] > self.of_address

    def weight(self, claim: Claim[T]) -> tuple[int, int]:
        """How much the one of its owners has who has most: the address first."""
        return max((self._addresses[owner.address], self._visitors[owner]) for owner in claim.owners)
