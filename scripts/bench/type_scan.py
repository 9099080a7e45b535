#!/usr/bin/env python3
"""type_scan.py [NAME...]: some 90 kinds of ops for nine types, each here and in TensorFlow, one thread, nothing fetched.

As op_scan.py: it finds types whose loops are slow. Prints microseconds, the least of each side, and their ratio, the
worst first. What TensorFlow does not have for a type is left out.
"""

import sys
import tempfile

import ml_dtypes
import numpy as np

import op_scan
from op_cases import C, f, i32, p, raw, sparse, tf

TYPES = {
    "double": np.float64,
    "half": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "complex64": np.complex64,
}


def v(type, *shape):
    """Positive numbers."""
    return (1 + i32(9, *shape) if np.issubdtype(type, np.integer) else p(*shape)).astype(type)


def reduction(op, axis):
    return lambda t: (lambda a: op(input=a, axis=[axis]), v(t, 1000, 300))


def unary(op, argument="x"):
    return lambda t: (lambda a: op(**{argument: a}), v(t, 300000))


def binary(op, *second):
    return lambda t: (lambda a, b: op(x=a, y=b), v(t, 1000, 300), v(t, *(second or (1000, 300))))


def one(tensor, value):
    return tf.cast(C(value), tensor.dtype.base_dtype)


CASES = {}
for name in "Sum Prod Max Min Mean".split():
    CASES[name] = reduction(getattr(raw, name), 1)
    CASES[name + "_columns"] = reduction(getattr(raw, name), 0)
for name in (
    "Abs Neg Sign Square Sqrt Rsqrt Exp Log Tanh Sigmoid Sin Floor Ceil Round Reciprocal Log1p Erf Invert IsNan ZerosLike"
).split():
    CASES[name] = unary(getattr(raw, name))
for name in "Relu Relu6 Elu Softplus LeakyRelu Selu".split():
    CASES[name] = unary(getattr(raw, name), "features")
for name in (
    "AddV2 Sub Mul RealDiv FloorDiv FloorMod Maximum Pow Less Equal SquaredDifference BitwiseAnd LeftShift"
).split():
    CASES[name] = binary(getattr(raw, name))
for name in "AddV2 Mul Maximum Less".split():
    CASES[name + "_row"] = binary(getattr(raw, name), 300)
SAME = {"strides": [1] * 4, "padding": "SAME"}
CASES |= {
    "Select": lambda t: (
        lambda c, a, b: raw.SelectV2(condition=c, t=a, e=b),
        f(300000) > 0,
        v(t, 300000),
        v(t, 300000),
    ),
    "ArgMax": lambda t: (lambda a: raw.ArgMax(input=a, dimension=1), v(t, 1000, 300)),
    "Cumsum": lambda t: (lambda a: raw.Cumsum(x=a, axis=1), v(t, 1000, 300)),
    "Softmax": lambda t: (lambda a: raw.Softmax(logits=a), v(t, 1000, 300)),
    "Gather": lambda t: (lambda a, b: raw.GatherV2(params=a, indices=b, axis=0), v(t, 10000, 16), i32(10000, 20000)),
    "Gather1": lambda t: (lambda a, b: raw.GatherV2(params=a, indices=b, axis=0), v(t, 10000), i32(10000, 200000)),
    "Concat": lambda t: (lambda a, b: raw.ConcatV2(values=[a, b], axis=1), v(t, 1000, 100), v(t, 1000, 50)),
    "Transpose": lambda t: (lambda a: raw.Transpose(x=a, perm=[1, 0]), v(t, 600, 500)),
    "Transpose3": lambda t: (lambda a: raw.Transpose(x=a, perm=[0, 2, 1]), v(t, 20, 100, 150)),
    "Tile": lambda t: (lambda a: raw.Tile(input=a, multiples=[4, 3]), v(t, 200, 100)),
    "Pad": lambda t: (
        lambda a: raw.PadV2(input=a, paddings=[[1, 1], [2, 2]], constant_values=one(a, 0)),
        v(t, 1000, 200),
    ),
    "Slice": lambda t: (lambda a: raw.Slice(input=a, begin=[10, 10], size=[900, 200]), v(t, 1000, 300)),
    "Strided": lambda t: (lambda a: a[::2, ::3], v(t, 1000, 300)),
    "Reverse": lambda t: (lambda a: raw.ReverseV2(tensor=a, axis=[1]), v(t, 1000, 300)),
    "CastF": lambda t: (lambda a: raw.Cast(x=a, DstT=tf.float32), v(t, 300000)),
    "CastI": lambda t: (lambda a: raw.Cast(x=a, DstT=tf.int32), v(t, 300000)),
    "CastD": lambda t: (lambda a: raw.Cast(x=a, DstT=tf.float64), v(t, 300000)),
    "FromF": lambda t: (lambda a: raw.Cast(x=a, DstT=tf.as_dtype(t)), p(300000)),
    "FromI": lambda t: (lambda a: raw.Cast(x=a, DstT=tf.as_dtype(t)), i32(9, 300000)),
    "MatMul": lambda t: (lambda a, b: raw.MatMul(a=a, b=b), v(t, 200, 200), v(t, 200, 200)),
    "MatMulT": lambda t: (lambda a, b: raw.MatMul(a=a, b=b, transpose_a=True), v(t, 300, 100), v(t, 300, 100)),
    "BatchMM": lambda t: (lambda a, b: raw.BatchMatMulV2(x=a, y=b), v(t, 32, 40, 40), v(t, 32, 40, 40)),
    "MatVec": lambda t: (lambda a, b: raw.MatMul(a=a, b=b), v(t, 1, 500), v(t, 500, 500)),
    "Conv2D": lambda t: (lambda a, b: raw.Conv2D(input=a, filter=b, **SAME), v(t, 2, 28, 28, 16), v(t, 3, 3, 16, 16)),
    "Depthwise": lambda t: (
        lambda a, b: raw.DepthwiseConv2dNative(input=a, filter=b, **SAME),
        v(t, 2, 28, 28, 16),
        v(t, 3, 3, 16, 1),
    ),
    "MaxPool": lambda t: (
        lambda a: raw.MaxPool(input=a, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        v(t, 4, 28, 28, 32),
    ),
    "AvgPool": lambda t: (
        lambda a: raw.AvgPool(value=a, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME"),
        v(t, 4, 28, 28, 32),
    ),
    "BiasAdd": lambda t: (lambda a, b: raw.BiasAdd(value=a, bias=b), v(t, 3000, 100), v(t, 100)),
    "BiasGrad": lambda t: (lambda a: raw.BiasAddGrad(out_backprop=a), v(t, 3000, 100)),
    "SegSum": lambda t: (lambda a, s: raw.SegmentSum(data=a, segment_ids=s), v(t, 10000, 16), np.sort(i32(500, 10000))),
    "USegSum": lambda t: (
        lambda a, s: raw.UnsortedSegmentSum(data=a, segment_ids=s, num_segments=500),
        v(t, 10000, 16),
        i32(500, 10000),
    ),
    "USegMax": lambda t: (
        lambda a, s: raw.UnsortedSegmentMax(data=a, segment_ids=s, num_segments=500),
        v(t, 10000, 16),
        i32(500, 10000),
    ),
    "TopK": lambda t: (lambda a: list(raw.TopKV2(input=a, k=10)), v(t, 300, 1000)),
    "Unique": lambda t: (lambda a: list(raw.Unique(x=a)), v(t, 50000)),
    "ScatterNd": lambda t: (
        lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[1000, 16]),
        i32(1000, 5000, 1),
        v(t, 5000, 16),
    ),
    "OneHot": lambda t: (
        lambda i: raw.OneHot(
            indices=i, depth=100, on_value=tf.cast(C(1), tf.as_dtype(t)), off_value=tf.cast(C(0), tf.as_dtype(t))
        ),
        i32(100, 3000),
    ),
    "Clip": lambda t: (
        lambda a: raw.ClipByValue(t=a, clip_value_min=one(a, 1), clip_value_max=one(a, 3)),
        v(t, 300000),
    ),
    "AddN": lambda t: (lambda a, b, c: raw.AddN(inputs=[a, b, c]), v(t, 300000), v(t, 300000), v(t, 300000)),
    "L2": lambda t: (lambda a: raw.L2Loss(t=a), v(t, 300000)),
    "ResizeB": lambda t: (lambda a: raw.ResizeBilinear(images=a, size=[112, 112]), v(t, 2, 56, 56, 3)),
    "ResizeN": lambda t: (lambda a: raw.ResizeNearestNeighbor(images=a, size=[112, 112]), v(t, 2, 56, 56, 3)),
    "Broadcast": lambda t: (lambda a: raw.BroadcastTo(input=a, shape=[1000, 300]), v(t, 300)),
    "Pack": lambda t: (lambda a, b: raw.Pack(values=[a, b], axis=1), v(t, 100000), v(t, 100000)),
    "Fill": lambda t: (lambda a: raw.Fill(dims=[1000, 300], value=a), v(t, 1).reshape(())),
    "XentG": lambda t: (
        lambda a, b: list(raw.SoftmaxCrossEntropyWithLogits(features=a, labels=b)),
        v(t, 500, 100),
        v(t, 500, 100),
    ),
    "LogSoftmax": lambda t: (lambda a: raw.LogSoftmax(logits=a), v(t, 1000, 300)),
    "LRN": lambda t: (lambda a: raw.LRN(input=a), v(t, 2, 28, 28, 32)),
    "SpaceToDepth": lambda t: (lambda a: raw.SpaceToDepth(input=a, block_size=2), v(t, 4, 28, 28, 32)),
    "Gnd": lambda t: (lambda a, b: raw.GatherNd(params=a, indices=b), v(t, 300, 300), i32(300, 50000, 2)),
    "Cumprod": lambda t: (lambda a: raw.Cumprod(x=a, axis=0), v(t, 1000, 300)),
    "SpMM": lambda t: (
        lambda i, a, b: raw.SparseTensorDenseMatMul(
            a_indices=i, a_values=a, a_shape=np.array([500, 500], np.int64), b=b
        ),
        sparse(500, 500, 5000)[0],
        v(t, 5000),
        v(t, 500, 32),
    ),
    "EinsumO": lambda t: (
        lambda a, b: raw.Einsum(inputs=[a, b], equation="bij,bjk->bik"),
        v(t, 16, 40, 40),
        v(t, 16, 40, 40),
    ),
    "Where": lambda t: (lambda a: raw.Where(condition=a), (v(t, 100000) * (f(100000) > 0)).astype(t)),
    "DynPart": lambda t: (
        lambda a, i: list(raw.DynamicPartition(data=a, partitions=i, num_partitions=4)),
        v(t, 10000, 16),
        i32(4, 10000),
    ),
    "Sgd": lambda t: (
        lambda a, g: raw.ApplyGradientDescent(var=a._ref(), alpha=one(a, 0.01), delta=g),
        v(t, 100000),
        v(t, 100000),
    ),
}


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            for type_name, type in TYPES.items():
                file = f"{folder}/graph.pb"
                try:
                    build, *values = case(type)
                    graph, init, targets = op_scan.write(build, values, file)
                    there = op_scan.theirs(graph, init, targets)
                except Exception:
                    continue
                here = op_scan.ours(file, targets)
                rows.append((here / there, name, type_name, here, there))
    for ratio, name, type_name, here, there in sorted(rows, reverse=True):
        print(f"{name:16} {type_name:10} {here:10.1f} us   TensorFlow {there:10.1f} us   {ratio:6.2f}")


if __name__ == "__main__":
    main()
