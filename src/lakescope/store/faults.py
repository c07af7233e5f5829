"""Files that are mapped and cut off meanwhile: reading on gives zeros and a note, not the end of the process.

Memory that lies in a file is gone when the file is cut off, and who reads it gets the signal SIGBUS, which ends the
process. No check beforehand helps: a file may be cut off at any moment. So there is a handler, as libwayland has one
for memory that it shares with others: where the address lies in a file that a question is reading just now, it puts
zeros in place of what is gone, notes that, and the reader goes on. When the question ends, the note is looked at, and
the answer is an error. Any other fault is left to whoever handled it before (faulthandler, or the end of the process):
readers that do not look at notes must not take zeros for data.

The handler runs between any two instructions of any thread, also within compiled loops. It is therefore native code
that takes no lock and no memory: it looks through a table of ranges and calls ``mmap``. It is made when it is first
needed, in about 30 ms, by the compiler that numba brings along.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import sys
import threading
from typing import Any

#: Where ``siginfo_t`` has the address of a fault, by system; others are not handled.
_ADDRESS_AT = {"linux": 16, "darwin": 24}
_CODE_AT = 8
#: What this system calls by these numbers: a mapping at a given place; a handler that is told the address, and runs on
#: a stack of its own where a thread has one.
_MAP_FIXED = 0x10
_SIGACTION_FLAGS = {"linux": 0x4 | 0x08000000, "darwin": 0x40 | 0x1}
#: Where ``struct sigaction`` has the flags: behind the handler and a mask of 1024 bits, or of 32.
_FLAGS_AT = {"linux": 8 + 128, "darwin": 8 + 4}
#: Ranges that the first table has room for; a full one is replaced by one twice as large.
_ROOM = 256
#: Words of a range: where it begins and ends, where its owner's words lie, and whether it met a fault.
_BEGIN, _END, _OWNER, _MET, _WORDS = 0, 1, 2, 3, 4
#: Words of an owner: questions that are reading, and faults that they met.
_READING, _FAULTS = 0, 1
#: Words of the head: the table, its ranges, and whether the handler has left a fault to others.
_TABLE, _COUNT, _LEFT = 0, 1, 2
_FAILED = 2**64 - 1


def is_supported() -> bool:
    """Whether faults are handled on this system: Linux and macOS of 64 bits; elsewhere only sizes are compared."""
    known = sys.platform in _ADDRESS_AT and sys.maxsize > 2**32
    return known and platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64")


class FaultCounter:
    """Whoever has files mapped and asks questions of them: an opened index."""

    def __init__(self) -> None:
        self._words = (ctypes.c_uint64 * 2)()
        self._lock = threading.Lock()

    @property
    def address(self) -> int:
        """Where the handler finds it."""
        return ctypes.addressof(self._words)

    @property
    def faults(self) -> int:
        """Faults that were met so far."""
        return int(self._words[_FAULTS])

    def begin(self) -> None:
        """A question begins: from now on faults are noted."""
        with self._lock:
            self._words[_READING] += 1
        _handler.install()

    def end(self) -> None:
        """It ends."""
        with self._lock:
            self._words[_READING] -= 1


class _Handler:
    """The handler and its table: one for the process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._head = (ctypes.c_uint64 * 3)()
        #: Every table there ever was: the handler may be looking at an old one.
        self._tables: list[Any] = []
        #: The owners of ranges, whose words must live as long.
        self._owners: dict[int, FaultCounter] = {}
        self._native: _Native | None = None

    def add(self, address: int, size: int, owner: FaultCounter) -> None:
        """Watch a range of memory."""
        with self._lock:
            if self._native is None:
                self._native = _Native(ctypes.addressof(self._head))
            number = next((n for n in range(self._head[_COUNT]) if not self._table[n * _WORDS + _END]), None)
            if number is None:
                number = self._head[_COUNT]
                if not self._tables or number * _WORDS == len(self._table):
                    self._grow()
            at = number * _WORDS
            # The end comes last: until then nothing lies in the range.
            self._table[at + _BEGIN], self._table[at + _OWNER], self._table[at + _MET] = address, owner.address, 0
            self._table[at + _END] = address + size + -size % mmap.PAGESIZE
            self._head[_COUNT] = max(self._head[_COUNT], number + 1)
            self._owners[address] = owner

    def remove(self, address: int) -> None:
        """Forget a range, before its memory is given back and becomes somebody else's."""
        with self._lock:
            at = self._at(address)
            self._table[at + _END] = self._table[at + _BEGIN] = 0
            del self._owners[address]

    def is_met(self, address: int) -> bool:
        """Whether a range met a fault."""
        with self._lock:
            return bool(self._table[self._at(address) + _MET])

    def install(self) -> None:
        """Be the one who handles the signal, again if somebody took it."""
        if self._native is not None:
            self._native.install()

    @property
    def _table(self) -> Any:
        return self._tables[-1]

    def _at(self, address: int) -> int:
        ranges = range(0, int(self._head[_COUNT]) * _WORDS, _WORDS)
        return next(at for at in ranges if self._table[at + _BEGIN] == address)

    def _grow(self) -> None:
        size = 2 * len(self._table) if self._tables else _ROOM * _WORDS
        table = (ctypes.c_uint64 * size)(*(self._table if self._tables else ()))
        self._tables.append(table)
        self._head[_TABLE] = ctypes.addressof(table)


class _Native:
    """The native code of the handler, and its installation by ``sigaction``."""

    def __init__(self, head: int) -> None:
        self._head = head
        self._libc = libc = ctypes.CDLL(None, use_errno=True)
        #: ``struct sigaction``, which begins with the handler: the one before.
        self._before = ctypes.create_string_buffer(256)
        self._lock = threading.Lock()
        called = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in _CALLED}
        self._engine, self._address = _compiled(head, ctypes.addressof(self._before), called)
        self._ours = self._action()

    def install(self) -> None:
        """Handle the signal; whoever did so until now is told of what is not ours."""
        there = ctypes.create_string_buffer(256)
        self._libc.sigaction(signal.SIGBUS, None, there)
        if ctypes.c_uint64.from_buffer(there).value == self._address:
            return
        with self._lock:
            self._libc.sigaction(signal.SIGBUS, self._ours, there)
            if ctypes.c_uint64.from_buffer(there).value != self._address:
                self._before.raw = there.raw
                # Whoever was handed a fault before may have gone on: it is asked first again.
                ctypes.c_uint64.from_address(self._head + 8 * _LEFT).value = 0

    def _action(self) -> Any:
        action = ctypes.create_string_buffer(256)
        ctypes.c_uint64.from_buffer(action).value = self._address
        ctypes.c_int.from_buffer(action, _FLAGS_AT[sys.platform]).value = _SIGACTION_FLAGS[sys.platform]
        return action


#: What the handler calls.
_CALLED = ("mmap", "sigaction", "raise")


def _compiled(head: int, before: int, called: dict[str, Any]) -> tuple[Any, int]:
    """The handler as native code, and where it lies. In C it would be this.

    void handler(int number, char *info, void *context) {
        if (*(int *)(info + CODE) > 0) {            // a fault, not a signal that somebody sent
            uint64_t address = *(uint64_t *)(info + ADDRESS), *range = head[TABLE];
            for (uint64_t left = head[COUNT]; left; left--, range += WORDS) {
                if (range[BEGIN] <= address && address < range[END]) {
                    uint64_t *owner = range[OWNER], page = address & -PAGESIZE;
                    if (!owner[READING] || mmap(page, range[END] - page, ...) == FAILED) break;
                    range[MET] = 1; owner[FAULTS]++; return;
                }
            }
        }
        sigaction(number, head[LEFT] ? DEFAULT : before, NULL);   // twice left to others: nobody handles it
        head[LEFT] = 1;
        raise(number);
    }
    """
    from llvmlite import binding, ir

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    word, number, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
    module = ir.Module("lakescope_faults")
    module.triple = binding.get_process_triple()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [number, byte, byte]), "handler")
    signal_number, info, _ = function.args
    blocks = {name: function.append_basic_block(name) for name in _BLOCKS}
    build = ir.IRBuilder(blocks["begin"])

    def at(address: Any, place: int, kind: Any = word) -> Any:
        """Where a word of a record lies."""
        moved = build.add(address, word(place * 8))
        return build.inttoptr(moved, kind.as_pointer())

    def call(name: str, result: Any, *arguments: Any) -> Any:
        kind = ir.FunctionType(result, [each.type for each in arguments])
        return build.call(build.inttoptr(word(called[name]), kind.as_pointer()), arguments)

    told = build.ptrtoint(info, word)
    code = build.load(build.inttoptr(build.add(told, word(_CODE_AT)), number.as_pointer()))
    address = build.load(build.inttoptr(build.add(told, word(_ADDRESS_AT[sys.platform])), word.as_pointer()))
    # The count first: a table that comes meanwhile has room for more, never for fewer.
    count, first = build.load(at(word(head), _COUNT)), build.load(at(word(head), _TABLE))
    build.cbranch(build.icmp_signed(">", code, number(0)), blocks["next"], blocks["other"])

    build.position_at_end(blocks["next"])
    place, left = build.phi(word), build.phi(word)
    build.cbranch(build.icmp_unsigned("==", left, word(0)), blocks["other"], blocks["compare"])

    build.position_at_end(blocks["compare"])
    begins, ends = build.load(at(place, _BEGIN)), build.load(at(place, _END))
    inside = build.and_(build.icmp_unsigned("<=", begins, address), build.icmp_unsigned("<", address, ends))
    further, fewer = build.add(place, word(8 * _WORDS)), build.sub(left, word(1))
    build.cbranch(inside, blocks["ours"], blocks["next"])
    for value, start, changed in ((place, first, further), (left, count, fewer)):
        value.add_incoming(start, blocks["begin"])
        value.add_incoming(changed, blocks["compare"])

    build.position_at_end(blocks["ours"])
    owner = build.load(at(place, _OWNER))
    reading = build.load(at(owner, _READING))
    build.cbranch(build.icmp_unsigned("==", reading, word(0)), blocks["other"], blocks["replace"])

    build.position_at_end(blocks["replace"])
    page = build.and_(address, word(-mmap.PAGESIZE))
    # Not for writing: such memory would count towards the limit of a worker.
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    got = call(
        *("mmap", word, page, build.sub(ends, page), number(mmap.PROT_READ), number(private), number(-1), word(0))
    )
    build.cbranch(build.icmp_unsigned("==", got, word(_FAILED)), blocks["other"], blocks["note"])

    build.position_at_end(blocks["note"])
    build.store(word(1), at(place, _MET))
    build.atomic_rmw("add", at(owner, _FAULTS), word(1), "seq_cst")
    build.ret_void()

    build.position_at_end(blocks["other"])
    default = ctypes.create_string_buffer(256)
    given_up = build.load(at(word(head), _LEFT))
    handler = build.select(build.icmp_unsigned("==", given_up, word(0)), word(before), word(ctypes.addressof(default)))
    call("sigaction", number, signal_number, handler, word(0))
    build.store(word(1), at(word(head), _LEFT))
    call("raise", number, signal_number)
    build.ret_void()

    parsed = binding.parse_assembly(str(module))
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return (engine, default), int(engine.get_function_address("handler"))


_BLOCKS = ("begin", "next", "compare", "ours", "replace", "note", "other")
_handler = _Handler()


def watch(address: int, size: int, owner: FaultCounter) -> None:
    """Handle faults in a range of memory that a file is mapped to, while its owner has a question."""
    if is_supported():
        _handler.add(address, size, owner)
        _handler.install()


def forget(address: int) -> None:
    """The range is about to be unmapped."""
    if is_supported():
        _handler.remove(address)


def is_met(address: int) -> bool:
    """Whether a fault was met in the range."""
    return is_supported() and _handler.is_met(address)
