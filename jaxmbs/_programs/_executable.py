"""Serialised executables without the operations that only the compiler reads.

XLA serialises an executable for CPUs as object code, the order of calls into that code with their
places in memory, and the operations that both were compiled from. To load it, XLA builds all these
operations once more, which takes three quarters of the time: 0.25 CPU s of a chunk of a run of the
parallelogram, where linking of the object code takes 0.02 s. Nearly nine tenths of the operations
(13,200 of 15,500 there) stand inside of fused computations. Such a computation is one call of
object code, of which only the shape of the result counts any more. So each call is replaced by one
operation of that shape, without arguments, that is never run, and the computation is left out. The
chunk loads in 0.09 s, to the same object code.

What is read here is the encoding of Protocol Buffers: fields with a number and a type, one behind
the other (https://protobuf.dev/programming-guides/encoding). Fields of other numbers are copied as
they are. The numbers are those of `ExecutableAndOptionsProto` (xla/pjrt/proto), of
`CompilationResultProto` (xla/service/cpu/executable.proto) and of `HloModuleProto`
(xla/service/hlo.proto). A version that has others finds nothing to replace, or makes an executable
that cannot be loaded, which the store then writes as a whole.
"""

import pickletools
from collections.abc import Callable, Iterator
from typing import Any

import jax


# ExecutableAndOptionsProto, CompilationResultProto, HloModuleProtoWithConfig
_SERIALIZED_EXECUTABLE = 1
_HLO_MODULE_WITH_CONFIG, _THUNK_SEQUENCE = 1, 6
_HLO_MODULE = 1

# HloModuleProto, HloComputationProto
_COMPUTATIONS = 3
_INSTRUCTIONS, _PROGRAM_SHAPE, _COMPUTATION_ID = 2, 4, 5

# HloInstructionProto
_NAME, _OPCODE, _SHAPE, _FUSION_KIND, _CALL_TARGET, _ID, _CALLED = 1, 2, 3, 11, 28, 35, 38

# Fusions that are object code. (Those of the kind "kCustom" are read by the library that runs
# them.)
_COMPILED_KINDS = (b"kLoop", b"kInput", b"kOutput")

# Types of fields.
_VARINT, _BYTES = 0, 2
_LENGTHS = {1: 8, 5: 4}


# Number, value, and the bytes of both.
_Field = tuple[int, Any, bytes]


def without_fused_operations(payload: bytes) -> bytes:
    """The same executable, as by `serialize_executable.serialize`, without the operations inside of
    fused computations; as it is where its format is not known."""
    if jax.default_backend() != "cpu":
        return payload
    made, start = [], 0
    for code, argument, place in pickletools.genops(payload):
        if place is None or code.name not in ("FRAME", "BINBYTES"):
            continue
        made.append(payload[start:place])
        # What JAX pickles comes in frames of so many bytes, which nobody needs.
        start = place + 9
        if code.name == "BINBYTES" and isinstance(argument, bytes):
            try:
                own = _executable(argument)
            except (ValueError, IndexError, KeyError, TypeError):
                return payload
            made.append(code.code.encode() + len(own).to_bytes(4, "little") + own)
            start = place + 5 + len(argument)
    return b"".join((*made, payload[start:]))


def _executable(data: bytes) -> bytes:
    # The first message, behind its length, is about how JAX uses the executable.
    length, start = _varint(data, 0)
    end = start + length
    return data[:end] + _replaced(data[end:], _SERIALIZED_EXECUTABLE, _compilation_result)


def _compilation_result(data: bytes) -> bytes:
    if all(number != _THUNK_SEQUENCE for number, _, _ in _fields(data)):
        # Its calls are made from the operations when it is loaded.
        raise ValueError("no calls")
    return _replaced(
        data, _HLO_MODULE_WITH_CONFIG, lambda config: _replaced(config, _HLO_MODULE, _module)
    )


def _module(data: bytes) -> bytes:
    fields = list(_fields(data))
    fused: set[int] = set()
    for number, value, _ in fields:
        if number == _COMPUTATIONS:
            fused.update(_fused_by(value))
    made: list[bytes] = []
    for number, value, whole in fields:
        if number != _COMPUTATIONS:
            made.append(whole)
        elif _first(value, _COMPUTATION_ID) not in fused:
            made.append(_message(_COMPUTATIONS, _computation(value)))
    return b"".join(made)


def _fused_by(computation: bytes) -> Iterator[int]:
    """Numbers of the computations that are called as fused and compiled ones."""
    for number, operation, _ in _fields(computation):
        if number == _INSTRUCTIONS and _is_compiled(operation):
            for of_field, value, _ in _fields(operation):
                if of_field == _CALLED:
                    yield from [value] if isinstance(value, int) else _varints(value)


def _computation(data: bytes) -> bytes:
    """A computation whose fusions are operations that are never run."""
    made: list[bytes] = []
    for number, value, whole in _fields(data):
        if number == _INSTRUCTIONS and _is_compiled(value):
            made.append(_message(_INSTRUCTIONS, _never_run(value)))
        # (The shape of the whole is that of its parameters and its result once more.)
        elif number != _PROGRAM_SHAPE:
            made.append(whole)
    return b"".join(made)


def _is_compiled(operation: bytes) -> bool:
    return _is(operation, b"fusion") and _first(operation, _FUSION_KIND) in _COMPILED_KINDS


def _is(operation: bytes, kind: bytes) -> bool:
    # (To look for the bytes is a tenth of the work, and answers nearly always.)
    return kind in operation and _first(operation, _OPCODE) == kind


def _never_run(operation: bytes) -> bytes:
    """An operation without arguments in place of another one: the only kind that has any shape."""
    kept = [whole for number, _, whole in _fields(operation) if number in (_NAME, _SHAPE, _ID)]
    call = _message(_OPCODE, b"custom-call"), _message(_CALL_TARGET, b"compiled")
    return b"".join((*kept, *call))


def _replaced(data: bytes, number: int, function: Callable[[bytes], bytes]) -> bytes:
    """A message, with the function of its fields of that number."""
    return b"".join(
        _message(number, function(value)) if of_field == number else whole
        for of_field, value, whole in _fields(data)
    )


def _first(data: bytes, number: int) -> Any:
    """The first field of that number; None if there is none."""
    return next((value for of_field, value, _ in _fields(data) if of_field == number), None)


def _fields(data: bytes) -> Iterator[_Field]:
    """The fields of a message.

    **Raises:** `ValueError` or `IndexError` where it is not one.
    """
    place = 0
    while place < len(data):
        start = place
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
        else:
            if kind == _BYTES:
                length, place = _varint(data, place)
            elif kind in _LENGTHS:
                length = _LENGTHS[kind]
            else:
                raise ValueError(f"fields of type {kind} are not known")
            value, place = data[place : place + length], place + length
        yield key >> 3, value, data[start:place]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, lowest first, and the place behind it."""
    value = shift = 0
    while True:
        group = data[place]
        place += 1
        value |= (group & 127) << shift
        shift += 7
        if group < 128:
            return value, place


def _varints(data: bytes) -> Iterator[int]:
    """Numbers, one behind the other."""
    place = 0
    while place < len(data):
        number, place = _varint(data, place)
        yield number


def _message(number: int, data: bytes) -> bytes:
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(data)) + data


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
