"""Numba types for the numbers that fill a vector of 64 bytes: one value per world, one machine instruction for all.

Kernels written with them read like scalar code for one world. Arithmetic, comparisons, ``select``, ``min``, ``max``,
``abs`` and a few functions of ``math`` act lane by lane; nothing crosses lanes except ``any_lane``, so no world depends
on its neighbours and a world in a batch equals that world alone, bit for bit. A Python or numba number mixes in freely
and counts for all lanes.

The scratch array ``s`` of a block decides the precision: 8 lanes of float64 or 16 of float32, and every kernel is
compiled for the one that it is called with. Doubles are rounded after each operation. Singles fuse ``a * b + c`` into
one rounding where the processor can and both operations stand in one expression: that is settled before LLVM sees the
kernel, so that copies of it, inlined in several places, round alike.

The functions defined here work inside compiled code only and raise ``NotImplementedError`` when called from Python.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.extending import intrinsic, lower_builtin, register_model
from numba.core.imputils import lower_cast
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

VECTOR_BYTES = 64
kernel = njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Decorator of a kernel that makes no array. It counts no references to those it gets: counting them up and down in
every call, atomically, took a fifth of the time. It cannot be called from Python: code for that took a fifth of the
time to compile."""
inlined = njit(error_model="numpy", _nrt=False, inline="always")
_HAS_FMA = bool(binding.get_host_cpu_features().get("fma")) or not binding.get_process_triple().startswith("x86")


class LanesType(types.Type):
    """Numba type of numbers side by side."""

    def __init__(self, number: Any, element: Any) -> None:
        super().__init__(name=f"Lanes({number})")
        self.number, self.size = number, VECTOR_BYTES * 8 // number.bitwidth
        self.llvm, self.mask = ir.VectorType(element, self.size), MaskType(self)


class MaskType(types.Type):
    """Numba type of truth values, one for each of some lanes."""

    def __init__(self, lanes: LanesType) -> None:
        super().__init__(name=f"Mask({lanes.number})")
        self.lanes, self.llvm = lanes, ir.VectorType(ir.IntType(1), lanes.size)


_OF_NUMBER = {
    types.float64: LanesType(types.float64, ir.DoubleType()),
    types.float32: LanesType(types.float32, ir.FloatType()),
}
for _kind in (LanesType, MaskType):
    register_model(_kind)(lambda manager, kind: models.PrimitiveModel(manager, kind, kind.llvm))


def _splat(builder: Any, value: Any, kind: LanesType) -> Any:
    undefined, index = ir.Constant(kind.llvm, ir.Undefined), ir.IntType(32)
    one = builder.insert_element(undefined, value, ir.Constant(index, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(index, kind.size), None))


@lower_cast(types.Float, LanesType)
@lower_cast(types.Integer, LanesType)
def _cast_number(context: Any, builder: Any, from_type: Any, to_type: Any, value: Any) -> Any:
    return _splat(builder, context.cast(builder, value, from_type, to_type.number), to_type)


def _common(args: Any, operand: Any) -> Any:
    """Return the one type of the class ``operand`` among ``args``; lanes mix with numbers. None: they do not fit."""
    kinds = {arg for arg in args if isinstance(arg, operand)}
    others = types.Float | types.Integer if operand is LanesType else ()
    fits = len(kinds) == 1 and all(arg in kinds or isinstance(arg, others) for arg in args)
    return kinds.pop() if fits else None


def _define(op: Any, emit: Any, n_operands: int = 2, compares: bool = False, operand: Any = LanesType) -> None:
    """Let kernels apply ``op`` to lanes, with numbers among them, or to masks; it ``compares`` or gives the same."""

    @infer_global(op)
    class _Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            kind = _common(args, operand) if len(args) == n_operands else None
            return signature(kind.mask if compares else kind, *[kind] * n_operands) if kind else None

    lower_builtin(op, *[operand] * n_operands)(lambda context, builder, sig, args: emit(builder, *args))


def _call_vector(builder: Any, name: str, *args: Any) -> Any:
    vector = args[0].type
    suffix = f"v{vector.count}f{8 * VECTOR_BYTES // vector.count}"
    kind = ir.FunctionType(vector, [vector] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.{suffix}"), args)


def _product(value: Any) -> Any:
    """Return the factors of a product of singles that may be fused with a sum; None: it is not one."""
    is_product = isinstance(value, ir.Instruction) and value.opname == "fmul"
    return value.operands if _HAS_FMA and is_product and value.type.element == ir.FloatType() else None


def _add(builder: Any, x: Any, y: Any) -> Any:
    if factors := _product(y):
        return _call_vector(builder, "fma", *factors, x)
    if factors := _product(x):
        return _call_vector(builder, "fma", *factors, y)
    return builder.fadd(x, y)


def _subtract(builder: Any, x: Any, y: Any) -> Any:
    if factors := _product(y):
        return _call_vector(builder, "fma", builder.fneg(factors[0]), factors[1], x)
    if factors := _product(x):
        return _call_vector(builder, "fma", *factors, builder.fneg(y))
    return builder.fsub(x, y)


for _op in (operator.add, operator.iadd):
    _define(_op, _add)
for _op in (operator.sub, operator.isub):
    _define(_op, _subtract)
for _op in (operator.mul, operator.imul):
    _define(_op, lambda b, x, y: b.fmul(x, y))
_define(operator.truediv, lambda b, x, y: b.fdiv(x, y))
_define(operator.neg, lambda b, x: b.fneg(x), 1)
_define(min, lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y))
_define(max, lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))
_define(math.copysign, lambda b, x, y: _call_vector(b, "copysign", x, y))
for _function, _name in ((abs, "fabs"), (math.sqrt, "sqrt"), (math.floor, "floor")):
    _define(_function, lambda b, x, name=_name: _call_vector(b, name, x), 1)
for _op, _sign in (
    (operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">="), (operator.eq, "=="),
):  # fmt: skip
    _define(_op, lambda b, x, y, sign=_sign: b.fcmp_ordered(sign, x, y), compares=True)
_define(operator.and_, lambda b, x, y: b.and_(x, y), operand=MaskType)
_define(operator.or_, lambda b, x, y: b.or_(x, y), operand=MaskType)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    vector = _OF_NUMBER[array_type.dtype].llvm
    return builder.gep(builder.bitcast(data, vector.as_pointer()), [index])


@intrinsic
def load(typing_context: Any, s: Any, index: Any) -> Any:
    """Return row ``index`` of the scratch array (no bounds check)."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, sig.args[0], *args), align=sig.return_type.number.bitwidth // 8)

    return _OF_NUMBER[s.dtype](s, types.intp), emit


@intrinsic
def store(typing_context: Any, s: Any, index: Any, value: Any) -> Any:
    """Write row ``index`` of the scratch array (no bounds check)."""
    kind = _OF_NUMBER[s.dtype]

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], args[0], args[1])
        builder.store(args[2], pointer, align=kind.number.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(s, types.intp, kind), emit


@intrinsic
def n_lanes(typing_context: Any, s: Any) -> Any:
    """Return the number of lanes of the scratch array, a constant to the compiler."""
    size = _OF_NUMBER[s.dtype].size
    return types.intp(s), lambda c, b, sig, args: ir.Constant(ir.IntType(64), size)


@intrinsic
def splat(typing_context: Any, s: Any, value: Any) -> Any:
    """Return one number in all lanes of the scratch array's type."""
    kind = _OF_NUMBER[s.dtype]
    return kind(s, kind), lambda c, b, sig, args: args[1]


@intrinsic
def by_precision(typing_context: Any, x: Any, double: Any, single: Any) -> Any:
    """Return the number ``double`` where x, lanes or the scratch array, is of doubles, else ``single``."""
    number = x.number if isinstance(x, LanesType) else x.dtype
    return types.float64(x, types.float64, types.float64), lambda c, b, sig, args: args[1 + (number == types.float32)]


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
    kind = condition.lanes
    return kind(condition, kind, kind), lambda c, b, sig, args: b.select(*args)


@intrinsic
def any_lane(typing_context: Any, condition: Any) -> Any:
    """Return True if the condition holds in any lane."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = ir.IntType(sig.args[0].lanes.size)
        return builder.icmp_unsigned("!=", builder.bitcast(args[0], bits), ir.Constant(bits, 0))

    return types.boolean(condition), emit
