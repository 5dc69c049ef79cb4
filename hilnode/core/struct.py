"""Structs: a NamedTuple of arrays laid down in memory once, and read from there by hot code through one pointer.

Passing a NamedTuple of eighty arrays by value means some six hundred machine words as arguments of every call: tens
of microseconds at the border from Python, and minutes in the compiler. A struct costs one word, and a kernel loads
only the fields that it names:

    class Pendulum(NamedTuple):
        state: F1
        dt: float

    view = viewer(Pendulum)

    @kernel
    def step(address):
        p = view(address)                 # p.state, p.dt; nested NamedTuples work too
        p.state[0] += p.dt

    struct = Struct(Pendulum(np.zeros(4), 0.001))
    step(struct.address)

Descriptors of arrays (pointer, shape, strides) and scalars in a struct never change once it is laid down, and the loads
say so, so that the compiler may keep them in registers; what an array holds may change as it likes.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numpy.typing import NDArray


class ArrayKind(NamedTuple):
    """What an array field must be: contiguous, with this element type and number of dimensions."""

    dtype: type
    ndim: int


F1 = Annotated[NDArray[np.float64], ArrayKind(np.float64, 1)]
F2 = Annotated[NDArray[np.float64], ArrayKind(np.float64, 2)]
F3 = Annotated[NDArray[np.float64], ArrayKind(np.float64, 3)]
I3 = Annotated[NDArray[np.int64], ArrayKind(np.int64, 3)]
I1 = Annotated[NDArray[np.int64], ArrayKind(np.int64, 1)]
I2 = Annotated[NDArray[np.int64], ArrayKind(np.int64, 2)]
U1 = Annotated[NDArray[np.uint64], ArrayKind(np.uint64, 1)]

_I64 = ir.IntType(64)
_ARRAY_FIELDS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")


@cache
def _fields(struct: Any) -> list[tuple[str, Any]]:
    """Name and kind of every field: an ArrayKind, int, float or a NamedTuple class."""
    hints = get_type_hints(struct, include_extras=True)
    fields = []
    for name in struct._fields:
        hint = hints[name]
        meta = getattr(hint, "__metadata__", None)
        kind = meta[0] if meta else hint
        if not isinstance(kind, ArrayKind) and kind not in (int, float) and not hasattr(kind, "_fields"):
            raise TypeError(f"{struct.__name__}.{name}: a struct holds arrays (F1, I1, ...), int, float or NamedTuples")
        fields.append((name, kind))
    return fields


def _numba_type(kind: Any) -> Any:
    if isinstance(kind, ArrayKind):
        return types.Array(numba.from_dtype(np.dtype(kind.dtype)), kind.ndim, "C")
    if kind is int:
        return types.int64
    if kind is float:
        return types.float64
    return types.NamedTuple([_numba_type(k) for _, k in _fields(kind)], kind)


class View(types.Type):  # type: ignore[misc]
    """The type of a pointer to a struct. Its name tells the layout, however deep, for it is what a cache goes by."""

    def __init__(self, struct: Any) -> None:
        self.struct = struct
        made_by = struct.instance_class
        layout = hashlib.sha256(_spelt(struct).encode()).hexdigest()[:12]
        super().__init__(name=f"View({made_by.__module__}.{made_by.__qualname__} {layout})")


def _spelt(kind: Any) -> str:
    """A type with the names of all fields within it."""
    if not isinstance(kind, types.BaseNamedTuple):
        return str(kind)
    parts = zip(kind.fields, kind.types, strict=True)
    return f"{kind.instance_class.__qualname__}({', '.join(f'{name}: {_spelt(k)}' for name, k in parts)})"


# The same for NamedTuples that are passed by value: numba tells them apart by class and types alone, so that two fields
# of one type which have changed places would go unnoticed in a cached kernel.
types.NamedTuple.key = property(lambda self: (self.instance_class, self.fields, self.types))
types.NamedUniTuple.key = property(lambda self: (self.instance_class, self.fields, self.dtype))


@register_model(View)
class _ViewModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: View) -> None:
        super().__init__(manager, kind, _I64)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = View

    def generic_resolve(self, view: View, name: str) -> Any:
        if name not in view.struct.fields:
            return None
        kind = view.struct.types[view.struct.fields.index(name)]
        return View(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@lower_getattr_generic(View)  # type: ignore[untyped-decorator]
def _load_field(context: Any, builder: Any, view: View, value: Any, name: str) -> Any:
    shape = context.get_value_type(view.struct)
    index = view.struct.fields.index(name)
    place = cgutils.gep_inbounds(builder, builder.inttoptr(value, shape.as_pointer()), 0, index)
    kind = view.struct.types[index]
    if isinstance(kind, types.BaseNamedTuple):
        return builder.ptrtoint(place, _I64)
    if isinstance(kind, types.Array):
        return _load_array(context, builder, kind, place)
    return _load_constant(builder, place)


def _load_constant(builder: Any, place: Any) -> Any:
    loaded = builder.load(place)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _load_array(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """A borrowed array: no reference counting, and each part is loaded only if it is used."""
    array = context.make_array(kind)(context, builder)
    if tuple(array._datamodel._fields) != _ARRAY_FIELDS:
        raise NotImplementedError(f"numba {numba.__version__} describes arrays by {array._datamodel._fields}")
    for i, part in enumerate(_ARRAY_FIELDS):
        if part in ("meminfo", "parent"):
            setattr(array, part, cgutils.get_null_value(getattr(array, part).type))
            continue
        at = cgutils.gep_inbounds(builder, place, 0, i)
        if part in ("shape", "strides"):
            words = [_load_constant(builder, cgutils.gep_inbounds(builder, at, 0, k)) for k in range(kind.ndim)]
            setattr(array, part, cgutils.pack_array(builder, words))
        else:
            setattr(array, part, _load_constant(builder, at))
    return array._getvalue()


def viewer(struct: Any) -> Any:
    """A function for kernels: `view(address)` looks at a struct of the NamedTuple class `struct` that lies there."""
    kind = View(_numba_type(struct))

    @intrinsic  # type: ignore[untyped-decorator]
    def view(typing: Any, address: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return args[0]

        return kind(types.int64), emit

    return view


@intrinsic  # type: ignore[untyped-decorator]
def address_of(typing: Any, view: Any) -> Any:
    """Where the struct that a kernel looks at lies, to hand it on through a C call."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return types.int64(view), emit


def zeros(kind: Any, shapes: dict[str, tuple[int, ...]], length: int) -> Any:
    """An instance of a NamedTuple class of arrays, all zero: of the shapes given by name, else of `length`."""
    return kind(*(np.zeros(shapes.get(name, (length,)), field.dtype) for name, field in _fields(kind)))


class Struct:
    """A NamedTuple laid down in memory; `address` stays good while this lives, and so do the arrays in it."""

    def __init__(self, content: Any) -> None:
        self.content = content
        self._memory = np.array(list(_words(content)), np.int64)
        self.address: int = self._memory.ctypes.data


def _words(content: Any) -> Iterator[int]:
    """The struct as 64-bit words, in the layout that numba gives a struct of arrays, int64 and float64."""
    name = type(content).__name__
    for field, kind in _fields(content.__class__):
        value = getattr(content, field)
        if isinstance(kind, ArrayKind):
            fits = isinstance(value, np.ndarray) and value.dtype == kind.dtype and value.ndim == kind.ndim
            if not fits or not value.flags.c_contiguous:
                raise TypeError(
                    f"{name}.{field} must be a contiguous {kind.dtype.__name__} array of {kind.ndim} dimension(s), not "
                    f"{getattr(value, 'dtype', type(value).__name__)} of {getattr(value, 'ndim', 0)}"
                )
            yield from (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        elif kind is int:
            if not hasattr(value, "__index__"):
                raise TypeError(f"{name}.{field} must be a whole number, not {value!r}")
            yield operator.index(value)
        elif kind is float:
            yield int(np.array(value, np.float64).view(np.int64))
        else:
            yield from _words(value)
