"""Numba type for ``LANES`` doubles side by side: one value per world, one machine instruction for all.

Kernels written with it read like scalar code for one world. Arithmetic, comparisons, ``select`` and a few functions act
lane by lane; nothing crosses lanes except ``any_lane``, so no world depends on its neighbours and a world in a batch
equals that world alone, bit for bit. A Python or numba float mixes in freely and counts for all lanes. Every operation
is rounded by itself: letting LLVM fuse a multiplication and an addition would gain a tenth of the time, but copies of a
kernel, inlined in two places, could then round differently.

The functions work inside compiled code only and raise ``NotImplementedError`` when called from Python.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.extending import intrinsic, lower_builtin, register_model
from numba.core.imputils import lower_cast
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

LANES = 8
kernel = njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Decorator of a kernel that makes no array. It counts no references to those it gets: counting them up and down in
every call, atomically, took a fifth of the time. It cannot be called from Python: code for that took a fifth of the
time to compile."""
inlined = njit(error_model="numpy", _nrt=False, inline="always")
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)


class LanesType(types.Type):
    """Numba type of LANES doubles."""


class MaskType(types.Type):
    """Numba type of LANES truth values."""


lanes = LanesType(name=f"Lanes{LANES}")
mask = MaskType(name=f"Mask{LANES}")


for _kind, _value in ((LanesType, _VECTOR), (MaskType, _MASK)):
    register_model(_kind)(lambda manager, kind, value=_value: models.PrimitiveModel(manager, kind, value))


def _splat(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), zeros)


@lower_cast(types.Float, LanesType)
@lower_cast(types.Integer, LanesType)
def _cast_number(context: Any, builder: Any, from_type: Any, to_type: Any, value: Any) -> Any:
    return _splat(builder, context.cast(builder, value, from_type, types.float64))


def _define(op: Any, operand: Any, result: Any, emit: Any, n_operands: int = 2) -> None:
    """Let kernels apply ``op`` to values of the type ``operand``; numbers mix with lanes."""
    fitting = (LanesType, types.Float, types.Integer) if operand == lanes else MaskType

    @infer_global(op)
    class _Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            fits = len(args) == n_operands and operand in args and all(isinstance(a, fitting) for a in args)
            return signature(result, *[operand] * n_operands) if fits else None

    @lower_builtin(op, *[type(operand)] * n_operands)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit(builder, *args)


for _op in (operator.add, operator.iadd):
    _define(_op, lanes, lanes, lambda b, x, y: b.fadd(x, y))
for _op in (operator.sub, operator.isub):
    _define(_op, lanes, lanes, lambda b, x, y: b.fsub(x, y))
for _op in (operator.mul, operator.imul):
    _define(_op, lanes, lanes, lambda b, x, y: b.fmul(x, y))
_define(operator.truediv, lanes, lanes, lambda b, x, y: b.fdiv(x, y))
_define(operator.neg, lanes, lanes, lambda b, x: b.fneg(x), 1)
for _op, _sign in (
    (operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">="), (operator.eq, "=="),
):  # fmt: skip
    _define(_op, lanes, mask, lambda b, x, y, sign=_sign: b.fcmp_ordered(sign, x, y))
_define(operator.and_, mask, mask, lambda b, x, y: b.and_(x, y))
_define(operator.or_, mask, mask, lambda b, x, y: b.or_(x, y))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Return the LANES doubles of the flat array from ``index`` on (no bounds check)."""
    return lanes(array, types.intp), lambda c, b, sig, args: b.load(_pointer(c, b, sig.args[0], *args), align=8)


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write LANES doubles to the flat array from ``index`` on (no bounds check)."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, sig.args[0], args[0], args[1]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), emit


@intrinsic
def take_ticket(typing_context: Any, counter: Any) -> Any:
    """Add one to ``counter[0]`` (int64) and return the value before; no two threads get the same number."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), emit


@intrinsic
def select(typing_context: Any, condition: Any, then: Any, otherwise: Any) -> Any:
    """Return ``then`` where the condition holds, else ``otherwise``."""
    return lanes(mask, lanes, lanes), lambda c, b, sig, args: b.select(*args)


@intrinsic
def any_lane(typing_context: Any, condition: Any) -> Any:
    """Return True if the condition holds in any lane."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(mask), emit


@intrinsic
def splat(typing_context: Any, value: Any) -> Any:
    """Return one number in all lanes."""
    return lanes(types.float64), lambda c, b, sig, args: _splat(b, args[0])


def _call_vector(builder: Any, name: str, *args: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(args))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f64")
    return builder.call(function, args)


@intrinsic
def floor(typing_context: Any, x: Any) -> Any:
    """Return the largest integer not above x."""
    return lanes(lanes), lambda c, b, sig, args: _call_vector(b, "floor", *args)


@intrinsic
def square_root(typing_context: Any, x: Any) -> Any:
    """Return sqrt(x)."""
    return lanes(lanes), lambda c, b, sig, args: _call_vector(b, "sqrt", *args)


@intrinsic
def absolute(typing_context: Any, x: Any) -> Any:
    """Return |x|."""
    return lanes(lanes), lambda c, b, sig, args: _call_vector(b, "fabs", *args)


@intrinsic
def copy_sign(typing_context: Any, magnitude: Any, sign: Any) -> Any:
    """Return ``magnitude`` with the sign of ``sign``."""
    return lanes(lanes, lanes), lambda c, b, sig, args: _call_vector(b, "copysign", *args)


@intrinsic
def smaller(typing_context: Any, x: Any, y: Any) -> Any:
    """Return min(x, y)."""
    return lanes(lanes, lanes), lambda c, b, sig, args: b.select(b.fcmp_ordered("<", *args), *args)


@intrinsic
def larger(typing_context: Any, x: Any, y: Any) -> Any:
    """Return max(x, y)."""
    return lanes(lanes, lanes), lambda c, b, sig, args: b.select(b.fcmp_ordered(">", *args), *args)
