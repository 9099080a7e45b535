#!/usr/bin/env python3
"""op_scan.py [NAME...]: one node of each of some 210 ops, here and in TensorFlow, one thread, nothing fetched.

Finds ops that are slower than TensorFlow's; scripts/bench-peers then measures them properly. Prints microseconds, the
least of each side, and their ratio, the worst first. Needs tensorflow-cpu and build/release/bin/troupe.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 0.12
v1 = tf.compat.v1
raw = tf.raw_ops
v1.disable_eager_execution()
random = np.random.RandomState(0)


def f(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def p(*shape):
    return random.uniform(0.1, 1, shape).astype(np.float32)


def c(*shape):
    return (f(*shape) + 1j * f(*shape)).astype(np.complex64)


def i32(below, *shape):
    return random.randint(0, below, shape).astype(np.int32)


def i64(below, *shape):
    return random.randint(0, below, shape).astype(np.int64)


C = tf.constant


def on_quint8(op):
    """The op on two tensors of uint8 that stand for numbers from -1 to 1."""
    ends = {"min_x": -1.0, "max_x": 1.0, "min_y": -1.0, "max_y": 1.0}
    return lambda a, b: list(op(x=tf.bitcast(a, tf.quint8), y=tf.bitcast(b, tf.quint8), **ends))[:1]


CASES = {
    "add": (lambda a, b: raw.AddV2(x=a, y=b), f(1000000), f(1000000)),
    "add_bcast_row": (lambda a, b: raw.AddV2(x=a, y=b), f(1000, 1000), f(1000)),
    "add_bcast_col": (lambda a, b: raw.AddV2(x=a, y=b), f(1000, 1000), f(1000, 1)),
    "mul_bcast_mid": (lambda a, b: raw.Mul(x=a, y=b), f(64, 100, 100), f(64, 1, 100)),
    "add_i32": (lambda a, b: raw.AddV2(x=a, y=b), i32(9, 1000000), i32(9, 1000000)),
    "div_i32": (lambda a, b: raw.FloorDiv(x=a, y=b), i32(99, 300000), i32(9, 300000) + 1),
    "add_i8": (lambda a, b: raw.AddV2(x=a, y=b), i32(9, 1000000).astype(np.int8), i32(9, 1000000).astype(np.int8)),
    "less": (lambda a, b: raw.Less(x=a, y=b), f(1000000), f(1000000)),
    "equal_i64": (lambda a, b: raw.Equal(x=a, y=b), i64(9, 1000000), i64(9, 1000000)),
    "maximum": (lambda a, b: raw.Maximum(x=a, y=b), f(1000000), f(1000000)),
    "and": (lambda a, b: raw.LogicalAnd(x=a, y=b), f(1000000) > 0, f(1000000) > 0),
    "bitand": (lambda a, b: raw.BitwiseAnd(x=a, y=b), i32(9, 1000000), i32(9, 1000000)),
    "select": (lambda c, a, b: raw.SelectV2(condition=c, t=a, e=b), f(1000000) > 0, f(1000000), f(1000000)),
    "select_bcast": (lambda c, a, b: raw.SelectV2(condition=c, t=a, e=b), f(1000, 1) > 0, f(1000, 1000), f(1000, 1000)),
    "sum_all": (lambda a: raw.Sum(input=a, axis=[0, 1]), f(1000, 1000)),
    "sum_rows": (lambda a: raw.Sum(input=a, axis=[1]), f(1000, 1000)),
    "sum_cols": (lambda a: raw.Sum(input=a, axis=[0]), f(1000, 1000)),
    "sum_mid": (lambda a: raw.Sum(input=a, axis=[1]), f(64, 100, 100)),
    "mean_02": (lambda a: raw.Mean(input=a, axis=[0, 2]), f(64, 100, 100)),
    "max_rows": (lambda a: raw.Max(input=a, axis=[1]), f(1000, 1000)),
    "max_cols": (lambda a: raw.Max(input=a, axis=[0]), f(1000, 1000)),
    "prod_rows": (lambda a: raw.Prod(input=a, axis=[1]), f(1000, 1000)),
    "sum_i64": (lambda a: raw.Sum(input=a, axis=[1]), i64(9, 1000, 1000)),
    "sum_f64": (lambda a: raw.Sum(input=a, axis=[1]), f(1000, 1000).astype(np.float64)),
    "all": (lambda a: raw.All(input=a, axis=[1]), f(1000, 1000) > -2),
    "eucl": (lambda a: raw.EuclideanNorm(input=a, axis=[1]), f(1000, 1000)),
    "argmax_rows": (lambda a: raw.ArgMax(input=a, dimension=1), f(1000, 1000)),
    "argmax_cols": (lambda a: raw.ArgMax(input=a, dimension=0), f(1000, 1000)),
    "cumsum1": (lambda a: raw.Cumsum(x=a, axis=1), f(1000, 1000)),
    "cumsum0": (lambda a: raw.Cumsum(x=a, axis=0), f(1000, 1000)),
    "cumprod1": (lambda a: raw.Cumprod(x=a, axis=1), f(1000, 1000)),
    "clogsumexp": (lambda a: raw.CumulativeLogsumexp(x=a, axis=1), f(300, 300)),
    "softmax": (lambda a: raw.Softmax(logits=a), f(1000, 1000)),
    "logsoftmax": (lambda a: raw.LogSoftmax(logits=a), f(1000, 1000)),
    "xent": (lambda a, b: list(raw.SoftmaxCrossEntropyWithLogits(features=a, labels=b)), f(1000, 1000), p(1000, 1000)),
    "sxent": (
        lambda a, b: list(raw.SparseSoftmaxCrossEntropyWithLogits(features=a, labels=b)),
        f(1000, 1000),
        i64(1000, 1000),
    ),
    "l2loss": (lambda a: raw.L2Loss(t=a), f(1000000)),
    "biasadd": (lambda a, b: raw.BiasAdd(value=a, bias=b), f(10000, 100), f(100)),
    "biasaddgrad": (lambda a: raw.BiasAddGrad(out_backprop=a), f(10000, 100)),
    "leaky": (lambda a: raw.LeakyRelu(features=a), f(1000000)),
    "gather0": (lambda a, b: raw.GatherV2(params=a, indices=b, axis=0), f(10000, 64), i32(10000, 20000)),
    "gather_scal": (lambda a, b: raw.GatherV2(params=a, indices=b, axis=0), f(100000), i32(100000, 300000)),
    "gather1": (lambda a, b: raw.GatherV2(params=a, indices=b, axis=1), f(500, 1000), i32(1000, 500)),
    "gathernd": (lambda a, b: raw.GatherNd(params=a, indices=b), f(300, 300, 8), i32(300, 50000, 2)),
    "scatternd": (
        lambda b, u: raw.ScatterNd(indices=b, updates=u, shape=[10000, 32]),
        i32(10000, 20000, 1),
        f(20000, 32),
    ),
    "tscatteradd": (
        lambda a, b, u: raw.TensorScatterAdd(tensor=a, indices=b, updates=u),
        f(10000, 32),
        i32(10000, 10000, 1),
        f(10000, 32),
    ),
    "uss": (
        lambda a, b: raw.UnsortedSegmentSum(data=a, segment_ids=b, num_segments=2000),
        f(20000, 64),
        i32(2000, 20000),
    ),
    "usmax": (
        lambda a, b: raw.UnsortedSegmentMax(data=a, segment_ids=b, num_segments=2000),
        f(20000, 64),
        i32(2000, 20000),
    ),
    "concat0": (lambda a, b: raw.ConcatV2(values=[a, b], axis=0), f(500, 1000), f(500, 1000)),
    "concat1": (lambda a, b: raw.ConcatV2(values=[a, b], axis=1), f(1000, 500), f(1000, 500)),
    "concat_small": (lambda a, b: raw.ConcatV2(values=[a, b], axis=1), f(100000, 3), f(100000, 5)),
    "split1": (lambda a: list(raw.Split(axis=1, value=a, num_split=4)), f(1000, 1000)),
    "pack1": (lambda a, b: raw.Pack(values=[a, b], axis=1), f(500000), f(500000)),
    "unpack1": (lambda a: list(raw.Unpack(value=a, num=4, axis=1)), f(250000, 4)),
    "transpose10": (lambda a: raw.Transpose(x=a, perm=[1, 0]), f(1000, 1000)),
    "transpose0213": (lambda a: raw.Transpose(x=a, perm=[0, 2, 1, 3]), f(8, 128, 12, 64)),
    "transpose_nhwc": (lambda a: raw.Transpose(x=a, perm=[0, 3, 1, 2]), f(16, 56, 56, 16)),
    "transpose_i8": (lambda a: raw.Transpose(x=a, perm=[1, 0]), i32(9, 1000, 1000).astype(np.int8)),
    "pad": (
        lambda a: raw.PadV2(input=a, paddings=[[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=0.0),
        f(16, 56, 56, 16),
    ),
    "mirrorpad": (
        lambda a: raw.MirrorPad(input=a, paddings=[[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT"),
        f(16, 56, 56, 16),
    ),
    "tile": (lambda a: raw.Tile(input=a, multiples=[2, 3]), f(400, 400)),
    "reverse": (lambda a: raw.ReverseV2(tensor=a, axis=[1]), f(1000, 1000)),
    "revseq": (lambda a, b: raw.ReverseSequence(input=a, seq_lengths=b, seq_dim=1), f(64, 100, 100), i64(100, 64)),
    "slice": (lambda a: raw.Slice(input=a, begin=[10, 10], size=[900, 900]), f(1000, 1000)),
    "sslice2": (lambda a: raw.StridedSlice(input=a, begin=[0, 0], end=[1000, 1000], strides=[2, 2]), f(1000, 1000)),
    "roll": (lambda a: raw.Roll(input=a, shift=[7], axis=[1]), f(1000, 1000)),
    "broadcastto": (lambda a: raw.BroadcastTo(input=a, shape=[1000, 1000]), f(1000, 1)),
    "onehot": (lambda a: raw.OneHot(indices=a, depth=1000, on_value=1.0, off_value=0.0), i32(1000, 1000)),
    "where": (lambda a: raw.Where(condition=a), f(1000, 300) > 0),
    "boolmask": (lambda a: raw.Where(condition=a), f(300000) > 0.9),
    "unique": (lambda a: list(raw.Unique(x=a)), i64(5000, 200000)),
    "uniquec": (lambda a: list(raw.UniqueWithCounts(x=a)), i32(5000, 200000)),
    "listdiff": (lambda a, b: list(raw.ListDiff(x=a, y=b)), i64(50000, 50000), i64(50000, 20000)),
    "invperm": (lambda a: raw.InvertPermutation(x=a), random.permutation(300000).astype(np.int32)),
    "bincount": (lambda a: raw.Bincount(arr=a, size=1000, weights=C([], tf.float32)), i32(1000, 300000)),
    "bucketize": (lambda a: raw.Bucketize(input=a, boundaries=list(np.linspace(-1, 1, 50))), f(300000)),
    "searchsorted": (lambda a, b: raw.LowerBound(sorted_inputs=a, values=b), np.sort(f(1, 10000)), f(1, 100000)),
    "hist": (lambda a: raw.HistogramFixedWidth(values=a, value_range=[-1.0, 1.0], nbins=100), f(300000)),
    "intopk": (lambda a, b: raw.InTopKV2(predictions=a, targets=b, k=5), f(1000, 1000), i32(1000, 1000)),
    "nth": (lambda a: raw.NthElement(input=a, n=500), f(300, 1000)),
    "cast_fi": (lambda a: raw.Cast(x=a, DstT=tf.int32), f(1000000)),
    "cast_u8f": (lambda a: raw.Cast(x=a, DstT=tf.float32), i32(255, 1000000).astype(np.uint8)),
    "cast_fbf": (lambda a: raw.Cast(x=a, DstT=tf.bfloat16), f(1000000)),
    "cast_fh": (lambda a: raw.Cast(x=a, DstT=tf.half), f(1000000)),
    "cast_fd": (lambda a: raw.Cast(x=a, DstT=tf.float64), f(1000000)),
    "cast_bf": (lambda a: raw.Cast(x=a, DstT=tf.float32), f(1000000) > 0),
    "checknum": (lambda a: raw.CheckNumerics(tensor=a, message="x"), f(1000000)),
    "clip": (lambda a: raw.ClipByValue(t=a, clip_value_min=-0.5, clip_value_max=0.5), f(1000000)),
    "addn4": (lambda a, b, c, d: raw.AddN(inputs=[a, b, c, d]), f(300000), f(300000), f(300000), f(300000)),
    "linspace": (lambda a: raw.LinSpace(start=a, stop=1.0, num=300000), np.float32(0)),
    "range": (lambda a: raw.Range(start=a, limit=300000, delta=1), np.int32(0)),
    "diag": (lambda a: raw.MatrixDiagV3(diagonal=a, k=0, num_rows=-1, num_cols=-1, padding_value=0.0), f(100, 100)),
    "diagpart": (lambda a: raw.MatrixDiagPartV3(input=a, k=0, padding_value=0.0), f(100, 100, 100)),
    "bandpart": (lambda a: raw.MatrixBandPart(input=a, num_lower=3, num_upper=C(3)), f(64, 128, 128)),
    "setdiag": (lambda a, b: raw.MatrixSetDiagV3(input=a, diagonal=b, k=0), f(64, 128, 128), f(64, 128)),
    "s2d": (lambda a: raw.SpaceToDepth(input=a, block_size=2), f(16, 56, 56, 16)),
    "d2s": (lambda a: raw.DepthToSpace(input=a, block_size=2), f(16, 28, 28, 64)),
    "s2b": (lambda a: raw.SpaceToBatchND(input=a, block_shape=[2, 2], paddings=[[0, 0], [0, 0]]), f(16, 56, 56, 16)),
    "im2": (
        lambda a: raw.ExtractImagePatches(
            images=a, ksizes=[1, 3, 3, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"
        ),
        f(4, 56, 56, 8),
    ),
    "maxpool": (
        lambda a: raw.MaxPool(input=a, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        f(16, 56, 56, 32),
    ),
    "maxpool3": (
        lambda a: raw.MaxPool(input=a, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME"),
        f(16, 56, 56, 32),
    ),
    "avgpool": (
        lambda a: raw.AvgPool(value=a, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        f(16, 56, 56, 32),
    ),
    "avgpoolg": (
        lambda g: raw.AvgPoolGrad(
            orig_input_shape=[16, 56, 56, 32], grad=g, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
        ),
        f(16, 28, 28, 32),
    ),
    "mpargmax": (
        lambda a: list(raw.MaxPoolWithArgmax(input=a, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")),
        f(16, 56, 56, 32),
    ),
    "fbn": (
        lambda a, s, o: list(
            raw.FusedBatchNormV3(x=a, scale=s, offset=o, mean=C([], tf.float32), variance=C([], tf.float32))
        )[:3],
        f(16, 56, 56, 32),
        f(32),
        f(32),
    ),
    "fbninf": (
        lambda a, s, o, m, v: raw.FusedBatchNormV3(x=a, scale=s, offset=o, mean=m, variance=v, is_training=False)[0],
        f(16, 56, 56, 32),
        f(32),
        f(32),
        f(32),
        p(32),
    ),
    "dilation": (
        lambda a, b: raw.Dilation2D(input=a, filter=b, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"),
        f(4, 56, 56, 8),
        f(3, 3, 8),
    ),
    "resize_bl": (lambda a: raw.ResizeBilinear(images=a, size=[224, 224]), f(2, 112, 112, 3)),
    "resize_bl_hp": (
        lambda a: raw.ResizeBilinear(images=a, size=[100, 120], half_pixel_centers=True),
        f(4, 224, 224, 3),
    ),
    "resize_nn": (lambda a: raw.ResizeNearestNeighbor(images=a, size=[224, 224]), f(2, 112, 112, 3)),
    "resize_bc": (lambda a: raw.ResizeBicubic(images=a, size=[224, 224]), f(2, 112, 112, 3)),
    "resize_ar": (lambda a: raw.ResizeArea(images=a, size=[100, 100]), f(2, 224, 224, 3)),
    "crop": (
        lambda a, b, c: raw.CropAndResize(image=a, boxes=b, box_ind=c, crop_size=[32, 32]),
        f(2, 112, 112, 3),
        p(50, 4),
        i32(2, 50),
    ),
    "rgb2hsv": (lambda a: raw.RGBToHSV(images=a), p(4, 112, 112, 3)),
    "hue": (lambda a: raw.AdjustHue(images=a, delta=0.1), p(4, 112, 112, 3)),
    "contrast": (lambda a: raw.AdjustContrastv2(images=a, contrast_factor=1.5), p(4, 112, 112, 3)),
    "nms": (
        lambda b, s: raw.NonMaxSuppressionV3(
            boxes=b, scores=s, max_output_size=100, iou_threshold=0.5, score_threshold=0.0
        ),
        np.sort(p(2000, 4)),
        p(2000),
    ),
    "chol": (
        lambda a: raw.Cholesky(input=a),
        (lambda x: x @ x.transpose(0, 2, 1) + 10 * np.eye(64, dtype=np.float32))(f(32, 64, 64)),
    ),
    "chol256": (lambda a: raw.Cholesky(input=a), (lambda x: x @ x.T + 10 * np.eye(256, dtype=np.float32))(f(256, 256))),
    "inv": (lambda a: raw.MatrixInverse(input=a), f(32, 64, 64) + 8 * np.eye(64, dtype=np.float32)),
    "det": (lambda a: raw.MatrixDeterminant(input=a), f(32, 64, 64) / 8),
    "solve": (
        lambda a, b: raw.MatrixSolve(matrix=a, rhs=b),
        f(32, 64, 64) + 8 * np.eye(64, dtype=np.float32),
        f(32, 64, 8),
    ),
    "trisolve": (
        lambda a, b: raw.MatrixTriangularSolve(matrix=a, rhs=b),
        f(32, 64, 64) + 8 * np.eye(64, dtype=np.float32),
        f(32, 64, 8),
    ),
    "svd": (lambda a: list(raw.Svd(input=a)), f(4, 48, 48)),
    "qr": (lambda a: list(raw.Qr(input=a)), f(8, 64, 64)),
    "eigh": (lambda a: list(raw.SelfAdjointEigV2(input=a)), (lambda x: x + x.transpose(0, 2, 1))(f(8, 48, 48))),
    "lu": (lambda a: list(raw.Lu(input=a)), f(32, 64, 64)),
    "lstsq": (
        lambda a, b: raw.MatrixSolveLs(matrix=a, rhs=b, l2_regularizer=np.float64(0.0)),
        f(8, 64, 32),
        f(8, 64, 4),
    ),
    "cross": (lambda a, b: raw.Cross(a=a, b=b), f(100000, 3), f(100000, 3)),
    "runiform": (lambda s: raw.RandomUniform(shape=s, dtype=tf.float32, seed=1, seed2=2), np.array([500000], np.int32)),
    "rnormal": (
        lambda s: raw.RandomStandardNormal(shape=s, dtype=tf.float32, seed=1, seed2=2),
        np.array([500000], np.int32),
    ),
    "rtrunc": (lambda s: raw.TruncatedNormal(shape=s, dtype=tf.float32, seed=1, seed2=2), np.array([500000], np.int32)),
    "runiint": (
        lambda s: raw.RandomUniformInt(shape=s, minval=0, maxval=100, seed=1, seed2=2),
        np.array([500000], np.int32),
    ),
    "rgamma": (lambda a: raw.RandomGamma(shape=[100], alpha=a, seed=1, seed2=2), p(1000)),
    "rpoisson": (lambda a: raw.RandomPoissonV2(shape=[100], rate=a * 5, seed=1, seed2=2), p(1000)),
    "multinomial": (lambda a: raw.Multinomial(logits=a, num_samples=100, seed=1, seed2=2), f(100, 1000)),
    "rshuffle": (lambda a: raw.RandomShuffle(value=a, seed=1, seed2=2), f(100000, 4)),
    "srnormal": (lambda s: raw.StatelessRandomNormal(shape=s, seed=[1, 2]), np.array([500000], np.int32)),
    "igamma": (lambda a, b: raw.Igamma(a=a, x=b), p(20000) * 5, p(20000) * 5),
    "betainc": (lambda a, b, x: raw.Betainc(a=a, b=b, x=x), p(20000) * 5, p(20000) * 5, p(20000)),
    "zeta": (lambda a, b: raw.Zeta(x=a, q=b), p(20000) * 5 + 1.1, p(20000) * 5),
    "polygamma": (lambda a, b: raw.Polygamma(a=a, x=b), np.ones(20000, np.float32), p(20000) * 5),
    "ndtri": (lambda a: raw.Ndtri(x=a), p(50000)),
    "complex_mul": (
        lambda a, b: raw.Mul(x=a, y=b),
        (f(300000) + 1j * f(300000)).astype(np.complex64),
        (f(300000) + 1j * f(300000)).astype(np.complex64),
    ),
    "complex_abs": (lambda a: raw.ComplexAbs(x=a), (f(300000) + 1j * f(300000)).astype(np.complex64)),
    "angle": (lambda a: raw.Angle(input=a), (f(300000) + 1j * f(300000)).astype(np.complex64)),
    "batchmm": (lambda a, b: raw.BatchMatMulV2(x=a, y=b), f(64, 64, 64), f(64, 64, 64)),
    "batchmm_small": (lambda a, b: raw.BatchMatMulV2(x=a, y=b), f(2000, 8, 8), f(2000, 8, 8)),
    "matvec": (lambda a, b: raw.MatMul(a=a, b=b), f(1000, 1000), f(1000, 1)),
    "vecmat": (lambda a, b: raw.MatMul(a=a, b=b), f(1, 1000), f(1000, 1000)),
    "matmul_f64": (lambda a, b: raw.MatMul(a=a, b=b), f(256, 256).astype(np.float64), f(256, 256).astype(np.float64)),
    "matmul_i32": (lambda a, b: raw.MatMul(a=a, b=b), i32(9, 200, 200), i32(9, 200, 200)),
    "matmul_c64": (
        lambda a, b: raw.MatMul(a=a, b=b),
        (f(200, 200) + 1j * f(200, 200)).astype(np.complex64),
        (f(200, 200) + 1j * f(200, 200)).astype(np.complex64),
    ),
    "conv_1x1": (
        lambda a, b: raw.Conv2D(input=a, filter=b, strides=[1, 1, 1, 1], padding="SAME"),
        f(4, 28, 28, 128),
        f(1, 1, 128, 128),
    ),
    "conv_dil": (
        lambda a, b: raw.Conv2D(input=a, filter=b, strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1]),
        f(4, 28, 28, 32),
        f(3, 3, 32, 32),
    ),
    "conv_group": (
        lambda a, b: raw.Conv2D(input=a, filter=b, strides=[1, 1, 1, 1], padding="SAME"),
        f(4, 28, 28, 64),
        f(3, 3, 16, 64),
    ),
    "conv_7x7": (
        lambda a, b: raw.Conv2D(input=a, filter=b, strides=[1, 2, 2, 1], padding="SAME"),
        f(2, 112, 112, 3),
        f(7, 7, 3, 32),
    ),
    "ctc_greedy": (
        lambda a, l: list(raw.CTCGreedyDecoder(inputs=a, sequence_length=l))[:3],
        f(100, 32, 50),
        np.full(32, 100, np.int32),
    ),
    "ctc_loss": (
        lambda a, i, v, l: list(raw.CTCLoss(inputs=a, labels_indices=i, labels_values=v, sequence_length=l)),
        f(50, 16, 30),
        np.stack([np.repeat(np.arange(16), 10), np.tile(np.arange(10), 16)], 1).astype(np.int64),
        i32(29, 160),
        np.full(16, 50, np.int32),
    ),
    "sparse_reorder": (
        lambda i, v: list(raw.SparseReorder(input_indices=i, input_values=v, input_shape=C([1000, 1000], tf.int64))),
        i64(1000, 50000, 2),
        f(50000),
    ),
    "sparse_todense": (
        lambda i, v: raw.SparseToDense(
            sparse_indices=i, output_shape=C([1000, 1000], tf.int64), sparse_values=v, default_value=0.0
        ),
        np.stack([np.arange(1000).repeat(30), np.tile(np.arange(30) * 33, 1000)], 1).astype(np.int64),
        f(30000),
    ),
    "as_string": (lambda a: raw.AsString(input=a), i64(100000, 20000)),
    "as_string_f": (lambda a: raw.AsString(input=a), f(20000)),
    "str2num": (lambda a: raw.StringToNumber(string_tensor=a), np.array([b"%f" % x for x in f(20000)], object)),
    "strjoin": (
        lambda a, b: raw.StringJoin(inputs=[a, b], separator=","),
        np.array([b"%d" % x for x in i32(99999, 20000)], object),
        np.array([b"%d" % x for x in i32(99999, 20000)], object),
    ),
    "regexrep": (
        lambda a: raw.StaticRegexReplace(input=a, pattern="[0-9]+", rewrite="#"),
        np.array([b"word %d of" % x for x in i32(99999, 10000)], object),
    ),
    "regexmatch": (
        lambda a: raw.StaticRegexFullMatch(input=a, pattern="word [0-9]+ .*"),
        np.array([b"word %d of" % x for x in i32(99999, 10000)], object),
    ),
    "substr": (
        lambda a: raw.Substr(input=a, pos=1, len=3),
        np.array([b"word %d of" % x for x in i32(99999, 20000)], object),
    ),
    "strlower": (lambda a: raw.StringLower(input=a), np.array([b"WORD %d of" % x for x in i32(99999, 20000)], object)),
    "strlen": (lambda a: raw.StringLength(input=a), np.array([b"WORD %d of" % x for x in i32(99999, 50000)], object)),
    "b64": (lambda a: raw.EncodeBase64(input=a), np.array([b"word %d of" % x for x in i32(99999, 20000)], object)),
    "hashstrong": (
        lambda a: raw.StringToHashBucketStrong(input=a, num_buckets=1000, key=[1, 2]),
        np.array([b"word %d of" % x for x in i32(99999, 20000)], object),
    ),
    "dynpart": (
        lambda a, b: list(raw.DynamicPartition(data=a, partitions=b, num_partitions=4)),
        f(50000, 16),
        i32(4, 50000),
    ),
    "dynstitch": (
        lambda i, j, a, b: raw.DynamicStitch(indices=[i, j], data=[a, b]),
        np.arange(0, 50000, 2).astype(np.int32),
        np.arange(1, 50000, 2).astype(np.int32),
        f(25000, 16),
        f(25000, 16),
    ),
    "decode_raw": (lambda a: raw.DecodeRaw(bytes=a, out_type=tf.float32), np.array([b"abcd" * 1000] * 100, object)),
    "adam": (
        lambda v, m, s, g: raw.ApplyAdam(
            var=v,
            m=m,
            v=s,
            beta1_power=0.9,
            beta2_power=0.99,
            lr=0.001,
            beta1=0.9,
            beta2=0.999,
            epsilon=1e-8,
            grad=C(np.ones(300000, np.float32)),
        ),
        f(300000),
        p(300000),
        p(300000),
        f(3),
    ),
    "sparse_seg_mean": (
        lambda a, i, s: raw.SparseSegmentMean(data=a, indices=i, segment_ids=s),
        f(10000, 64),
        i32(10000, 20000),
        np.sort(i32(2000, 20000)),
    ),
    "population": (lambda a: raw.PopulationCount(x=a), i32(99999, 500000)),
    "leftshift": (lambda a, b: raw.LeftShift(x=a, y=b), i32(99, 500000), i32(9, 500000)),
    "fakequant": (lambda a: raw.FakeQuantWithMinMaxArgs(inputs=a), f(500000)),
    "quantize": (lambda a: list(raw.QuantizeV2(input=a, min_range=-1.0, max_range=1.0, T=tf.quint8))[:1], f(500000)),
    "approxeq": (lambda a, b: raw.ApproximateEqual(x=a, y=b), f(500000), f(500000)),
    "xlogy": (lambda a, b: raw.Xlogy(x=a, y=b), p(200000), p(200000)),
    "nextafter": (lambda a, b: raw.NextAfter(x1=a, x2=b), f(200000), f(200000)),
    "squareddiff": (lambda a, b: raw.SquaredDifference(x=a, y=b), f(1000000), f(1000000)),
    "floormod_i": (lambda a, b: raw.FloorMod(x=a, y=b), i32(99, 300000), i32(9, 300000) + 1),
    "pow_i": (lambda a, b: raw.Pow(x=a, y=b), i32(9, 300000), i32(5, 300000)),
    "segmax_f64": (
        lambda a, s: raw.SegmentMax(data=a, segment_ids=s),
        f(50000, 5).astype(np.float64),
        np.sort(i32(5000, 50000)),
    ),
    "max_rows20": (lambda a: raw.Max(input=a, axis=[1]), f(20000, 20).astype(np.float64)),
    "prod_rows20": (lambda a: raw.Prod(input=a, axis=[1]), f(20000, 20).astype(np.float64)),
    "prod_c64": (lambda a: raw.Prod(input=a, axis=[1]), c(300, 300)),
    "prod_c64_columns": (lambda a: raw.Prod(input=a, axis=[0]), c(300, 300)),
    "sum_c64": (lambda a: raw.Sum(input=a, axis=[1]), c(300, 300)),
    "sum_c64_columns": (lambda a: raw.Sum(input=a, axis=[0]), c(300, 300)),
    "mean_c128_all": (lambda a: raw.Mean(input=a, axis=[0, 1]), c(300, 300).astype(np.complex128)),
    "quantize_axis": (
        lambda a, b, c: list(raw.QuantizeV2(input=a, min_range=b, max_range=c, T=tf.qint8, axis=1, mode="SCALED"))[:1],
        f(10000, 64),
        -p(64),
        p(64),
    ),
    "dequantize_axis": (
        lambda a, b, c: raw.Dequantize(
            input=tf.bitcast(a, tf.qint8), min_range=b, max_range=c, axis=1, mode="SCALED"
        ),
        i32(99, 10000, 64).astype(np.int8),
        -p(64),
        p(64),
    ),
    "quant_mul": (on_quint8(raw.QuantizedMul), i32(255, 300000).astype(np.uint8), i32(255, 300000).astype(np.uint8)),
    "quant_add": (on_quint8(raw.QuantizedAdd), i32(255, 300000).astype(np.uint8), i32(255, 300000).astype(np.uint8)),
    "eigh256": (lambda a: list(raw.SelfAdjointEigV2(input=a)), (lambda x: x + x.T)(f(256, 256))),
    "eigh_c64": (lambda a: list(raw.SelfAdjointEigV2(input=a)), (lambda x: x + x.conj().T)(c(96, 96))),
    "svd256": (lambda a: list(raw.Svd(input=a)), f(256, 256)),
    "svd_c64": (lambda a: list(raw.Svd(input=a)), c(96, 96)),
    "qr256": (lambda a: list(raw.Qr(input=a)), f(256, 256)),
    "qr_c64": (lambda a: list(raw.Qr(input=a)), c(96, 96)),
    "lu256": (lambda a: list(raw.Lu(input=a)), f(256, 256)),
    "solve_c64": (lambda a, b: raw.MatrixSolve(matrix=a, rhs=b), c(96, 96), c(96, 8)),
    "det256": (lambda a: raw.MatrixDeterminant(input=a), f(256, 256) / 8),
    "eig_f32": (lambda a: list(raw.Eig(input=a, Tout=tf.complex64)), f(64, 64)),
    "lstsq256": (
        lambda a, b: raw.MatrixSolveLs(matrix=a, rhs=b, l2_regularizer=np.float64(0.0), fast=False),
        f(256, 128),
        f(256, 4),
    ),
    "matsqrt": (
        lambda a: raw.MatrixSquareRoot(input=a),
        (lambda x: x @ x.T + 10 * np.eye(64, dtype=np.float32))(f(64, 64)),
    ),
    "maxpool_bf16": (
        lambda a: raw.MaxPool(
            input=tf.cast(a, tf.bfloat16), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
        ),
        f(8, 56, 56, 100),
    ),
    "maxpool3d": (
        lambda a: raw.MaxPool3D(input=a, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID"),
        f(2, 16, 32, 32, 8),
    ),
    "avgpool3d": (
        lambda a: raw.AvgPool3D(input=a, ksize=[1, 3, 3, 3, 1], strides=[1, 1, 1, 1, 1], padding="SAME"),
        f(2, 16, 32, 32, 8),
    ),
    "fresnel": (lambda a: raw.FresnelSin(x=a), f(50000) * 5),
    "dawsn": (lambda a: raw.Dawsn(x=a), f(50000) * 5),
}


def write(build, values, file):
    """A graph of `build(*variables)`; gives the graph, its initializer, the ops of its results."""
    with tf.Graph().as_default() as graph:
        results = build(*(v1.Variable(C(value), use_resource=False) for value in values))
        init = v1.variables_initializer(v1.global_variables(), name="init")
    results = [results] if isinstance(results, tf.Tensor) else results
    with open(file, "wb") as out:
        out.write(graph.as_graph_def().SerializeToString())
    return graph, init, [getattr(result, "output", result).op for result in results]


def theirs(graph, init, targets):
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with v1.Session(graph=graph, config=config) as session:
        session.run(init)
        call = session.make_callable(targets)
        call()
        least, runs, begin = float("inf"), 0, time.perf_counter()
        while runs < 5 or time.perf_counter() < begin + SECONDS:
            before = time.perf_counter()
            call()
            least = min(least, time.perf_counter() - before)
            runs += 1
    return 1e6 * least


def ours(file, targets):
    command = [
        f"{ROOT}/build/release/bin/troupe",
        "bench",
        file,
        "--init",
        "init",
        "--threads",
        "1",
        "--seconds",
        str(SECONDS),
    ]
    for target in {op.name for op in targets}:
        command += ["--target", target]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["min_us"]


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (build, *values) in CASES.items():
            if len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            file = f"{folder}/{name}.pb"
            graph, init, targets = write(build, values, file)
            here, there = ours(file, targets), theirs(graph, init, targets)
            rows.append((here / there, name, here, there))
    for ratio, name, here, there in sorted(rows, reverse=True):
        print(f"{name:16} {here:10.1f} us   TensorFlow {there:10.1f} us   {ratio:6.2f}")


if __name__ == "__main__":
    main()
