"""The cases of op_scan.py: for each name a function that builds an op from variables, and the variables' values."""

import os

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
raw = tf.raw_ops
v1.disable_eager_execution()
random = np.random.RandomState(0)
# Of all sessions: the first one's threads are the process's.
ONE_THREAD = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)


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
N = 100000


def on_quint8(op):
    """The op on two tensors of uint8 that stand for numbers from -1 to 1."""
    ends = {"min_x": -1.0, "max_x": 1.0, "min_y": -1.0, "max_y": 1.0}
    return lambda a, b: list(op(x=tf.bitcast(a, tf.quint8), y=tf.bitcast(b, tf.quint8), **ends))[:1]


def sparse(rows, columns, count):
    """Sorted indices of different places of a matrix, and values for them."""
    places = np.sort(random.choice(rows * columns, count, replace=False))
    return np.stack([places // columns, places % columns], 1).astype(np.int64), f(count)


def words(pattern, count):
    return np.array([pattern % number for number in i32(99999, count)], object)


def images(*shape):
    return random.randint(0, 256, shape).astype(np.uint8)


def smooth(height, width):
    """A picture whose neighbours are alike, as those of photographs are."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([128 + 100 * np.sin(x / 17 + k) * np.cos(y / 23) for k in range(3)], 2).astype(np.uint8)


def boxes(count):
    low = p(count, 2) * 0.8
    return np.concatenate([low, low + 0.15 * p(count, 2)], 1)


def encoded(op):
    """What an encoder of TensorFlow makes of a picture."""
    with tf.Graph().as_default(), v1.Session(config=ONE_THREAD) as session:
        return np.array(session.run(op(C(smooth(375, 500)))), object)


def update(op, refs, *inputs, **constants):
    """The op on variables, its inputs `refs`, and tensors, its inputs `inputs`."""
    return lambda *values: op(
        **{name: value._ref() for name, value in zip(refs, values)},
        **dict(zip(inputs, values[len(refs) :])),
        **constants,
    )


SHAPE = np.array([1000, 1000], np.int64)
SPARSE = sparse(1000, 1000, 20000)
SPARSE_PAIR = (*SPARSE, *sparse(1000, 1000, 20000))
SCATTERED = (f(10000, 32), i32(10000, 2000), f(2000, 32))
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
        lambda a, b, c: raw.Dequantize(input=tf.bitcast(a, tf.qint8), min_range=b, max_range=c, axis=1, mode="SCALED"),
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
        lambda a: raw.MaxPool(input=tf.cast(a, tf.bfloat16), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
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
    # --- sparse
    "sp_add": (
        lambda i, v, j, w: list(
            raw.SparseAdd(a_indices=i, a_values=v, a_shape=SHAPE, b_indices=j, b_values=w, b_shape=SHAPE, thresh=0.0)
        ),
        *SPARSE_PAIR,
    ),
    "sp_concat": (
        lambda i, v, j, w: list(raw.SparseConcat(indices=[i, j], values=[v, w], shapes=[SHAPE, SHAPE], concat_dim=1)),
        *SPARSE_PAIR,
    ),
    "sp_reduce_sum": (
        lambda i, v: raw.SparseReduceSum(input_indices=i, input_values=v, input_shape=SHAPE, reduction_axes=[1]),
        *SPARSE,
    ),
    "sp_reduce_max": (
        lambda i, v: raw.SparseReduceMax(input_indices=i, input_values=v, input_shape=SHAPE, reduction_axes=[0]),
        *SPARSE,
    ),
    "sp_fill_empty": (
        lambda i, v: list(raw.SparseFillEmptyRows(indices=i, values=v, dense_shape=SHAPE, default_value=0.0)),
        *SPARSE,
    ),
    "sp_slice": (
        lambda i, v: list(
            raw.SparseSlice(
                indices=i, values=v, shape=SHAPE, start=C([100, 100], tf.int64), size=C([500, 500], tf.int64)
            )
        ),
        *SPARSE,
    ),
    "sp_reshape": (
        lambda i: list(raw.SparseReshape(input_indices=i, input_shape=SHAPE, new_shape=C([100, -1], tf.int64))),
        sparse(1000, 1000, 20000)[0],
    ),
    "sp_softmax": (lambda i, v: raw.SparseSoftmax(sp_indices=i, sp_values=v, sp_shape=SHAPE), *SPARSE),
    "sp_split": (
        lambda i, v: list(
            raw.SparseSplit(split_dim=C(1, tf.int64), indices=i, values=v, shape=SHAPE, num_split=4).output_values
        ),
        *SPARSE,
    ),
    "sp_max": (
        lambda i, v, j, w: list(
            raw.SparseSparseMaximum(a_indices=i, a_values=v, a_shape=SHAPE, b_indices=j, b_values=w, b_shape=SHAPE)
        ),
        *SPARSE_PAIR,
    ),
    "sp_dense_mul": (
        lambda i, v, d: raw.SparseDenseCwiseMul(sp_indices=i, sp_values=v, sp_shape=SHAPE, dense=d),
        *SPARSE,
        f(1000, 1000),
    ),
    "sp_dense_add": (
        lambda i, v, d: raw.SparseTensorDenseAdd(a_indices=i, a_values=v, a_shape=SHAPE, b=d),
        *SPARSE,
        f(1000, 1000),
    ),
    "sp_serialize": (
        lambda i, v: raw.SerializeManySparse(sparse_indices=i, sparse_values=v, sparse_shape=SHAPE),
        *SPARSE,
    ),
    "sp_sets": (
        lambda a, b: list(raw.DenseToDenseSetOperation(set1=a, set2=b, set_operation="intersection")),
        i64(1000, 500, 50),
        i64(1000, 500, 50),
    ),
    "sp_matmul_dense": (
        lambda a, b: raw.SparseMatMul(a=a, b=b, a_is_sparse=True),
        f(300, 300) * (f(300, 300) > 0.8),
        f(300, 300),
    ),
    "sp_cross": (
        lambda a, b: list(
            raw.SparseCross(
                indices=[],
                values=[],
                shapes=[],
                dense_inputs=[a, b],
                hashed_output=True,
                num_buckets=1000,
                hash_key=7,
                out_type=tf.int64,
                internal_type=tf.int64,
            )
        ),
        i64(1000, 500, 5),
        i64(1000, 500, 5),
    ),
    # --- segments
    "seg_mean": (lambda a, s: raw.SegmentMean(data=a, segment_ids=s), f(20000, 32), np.sort(i32(1000, 20000))),
    "seg_min": (lambda a, s: raw.SegmentMin(data=a, segment_ids=s), f(20000, 32), np.sort(i32(1000, 20000))),
    "seg_prod": (lambda a, s: raw.SegmentProd(data=a, segment_ids=s), f(20000, 32), np.sort(i32(1000, 20000))),
    "useg_min": (
        lambda a, s: raw.UnsortedSegmentMin(data=a, segment_ids=s, num_segments=1000),
        f(20000, 32),
        i32(1000, 20000),
    ),
    "useg_prod": (
        lambda a, s: raw.UnsortedSegmentProd(data=a, segment_ids=s, num_segments=1000),
        f(20000, 32),
        i32(1000, 20000),
    ),
    "spseg_sqrtn": (
        lambda a, i, s: raw.SparseSegmentSqrtN(data=a, indices=i, segment_ids=s),
        f(10000, 32),
        i32(10000, 20000),
        np.sort(i32(1000, 20000)),
    ),
    "spseg_sum_grad": (
        lambda a, i, s: raw.SparseSegmentSumGrad(grad=a, indices=i, segment_ids=s, output_dim0=10000),
        f(1000, 32),
        i32(10000, 20000),
        np.sort(np.concatenate([np.arange(1000), i32(1000, 19000)])).astype(np.int32),
    ),
    "spseg_mean_grad": (
        lambda a, i, s: raw.SparseSegmentMeanGrad(grad=a, indices=i, segment_ids=s, output_dim0=10000),
        f(1000, 32),
        i32(10000, 20000),
        np.sort(np.concatenate([np.arange(1000), i32(1000, 19000)])).astype(np.int32),
    ),
    # --- strings
    "regex_replace": (
        lambda a: raw.RegexReplace(input=a, pattern=C("o[rf]"), rewrite=C("x")),
        words(b"word %d of", 20000),
    ),
    "regex_match": (lambda a: raw.RegexFullMatch(input=a, pattern=C("w.*[0-9]+ of")), words(b"word %d of", 20000)),
    "split": (
        lambda a: list(raw.StringSplit(input=a, delimiter=C(" "), skip_empty=True)),
        words(b"word %d of it", 20000),
    ),
    "strip": (lambda a: raw.StringStrip(input=a), words(b"  word %d of  ", 20000)),
    "upper": (lambda a: raw.StringUpper(input=a), words(b"word %d of", 20000)),
    "reduce_join": (
        lambda a: raw.ReduceJoin(inputs=a, reduction_indices=C([1]), separator=","),
        words(b"w%d", 20000).reshape(2000, 10),
    ),
    "str_format": (
        lambda a: raw.StringFormat(inputs=[a], template="<{}>", placeholder="{}", summarize=1000),
        i64(100000, 1000),
    ),
    "hash_bucket": (lambda a: raw.StringToHashBucket(string_tensor=a, num_buckets=1000), words(b"word %d of", 20000)),
    "ngrams": (
        lambda a, s: list(
            raw.StringNGrams(
                data=a,
                data_splits=s,
                separator=" ",
                ngram_widths=[2, 3],
                left_pad="",
                right_pad="",
                pad_width=0,
                preserve_short_sequences=False,
            )
        ),
        words(b"w%d", 20000),
        np.arange(0, 20001, 20).astype(np.int64),
    ),
    "useg_join": (
        lambda a, s: raw.UnsortedSegmentJoin(inputs=a, segment_ids=s, num_segments=1000, separator=","),
        words(b"w%d", 20000),
        i32(1000, 20000),
    ),
    "decode64": (
        lambda a: raw.DecodeBase64(input=a),
        np.array([b"YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4" * 4] * 5000, object),
    ),
    "serialize": (lambda a: raw.SerializeTensor(tensor=a), f(300000)),
    "as_string_f_precise": (lambda a: raw.AsString(input=a, precision=3), f(20000)),
    # --- images
    "resize_bilinear_grad": (
        lambda g, a: raw.ResizeBilinearGrad(grads=g, original_image=a),
        f(4, 224, 224, 3),
        f(4, 112, 112, 3),
    ),
    "resize_bicubic_grad": (
        lambda g, a: raw.ResizeBicubicGrad(grads=g, original_image=a),
        f(2, 112, 112, 3),
        f(2, 56, 56, 3),
    ),
    "resize_nearest_grad": (lambda g: raw.ResizeNearestNeighborGrad(grads=g, size=[112, 112]), f(4, 224, 224, 3)),
    "crop_grad_image": (
        lambda g, b, i: raw.CropAndResizeGradImage(
            grads=g, boxes=b, box_ind=i, image_size=[4, 100, 100, 16], T=tf.float32
        ),
        f(100, 14, 14, 16),
        boxes(100),
        i32(4, 100),
    ),
    "crop_grad_boxes": (
        lambda g, a, b, i: raw.CropAndResizeGradBoxes(grads=g, image=a, boxes=b, box_ind=i),
        f(100, 14, 14, 16),
        f(4, 100, 100, 16),
        boxes(100),
        i32(4, 100),
    ),
    "adjust_contrast": (lambda a: raw.AdjustContrastv2(images=a, contrast_factor=1.5), p(4, 224, 224, 3)),
    "adjust_saturation": (lambda a: raw.AdjustSaturation(images=a, scale=1.5), p(4, 224, 224, 3)),
    "hsv_to_rgb": (lambda a: raw.HSVToRGB(images=a), p(4, 224, 224, 3)),
    "draw_boxes": (
        lambda a, b: raw.DrawBoundingBoxes(images=a, boxes=b),
        p(4, 224, 224, 3),
        boxes(40).reshape(4, 10, 4),
    ),
    "glimpse": (lambda a, o: raw.ExtractGlimpse(input=a, size=[64, 64], offsets=o), p(16, 224, 224, 3), f(16, 2)),
    "projective": (
        lambda a, t: raw.ImageProjectiveTransformV2(
            images=a, transforms=t, output_shape=[224, 224], interpolation="BILINEAR"
        ),
        p(2, 224, 224, 3),
        np.array([[1, 0.1, 3, -0.1, 1, 5, 0, 0]] * 2, np.float32),
    ),
    "scale_translate": (
        lambda a: raw.ScaleAndTranslate(images=a, size=[112, 112], scale=[0.5, 0.5], translation=[0.0, 0.0]),
        p(2, 224, 224, 3),
    ),
    "nms_v4": (
        lambda b, s: list(
            raw.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=100, iou_threshold=0.5, score_threshold=0.1)
        ),
        boxes(2000),
        p(2000),
    ),
    "nms_v5": (
        lambda b, s: list(
            raw.NonMaxSuppressionV5(
                boxes=b, scores=s, max_output_size=100, iou_threshold=0.5, score_threshold=0.1, soft_nms_sigma=0.5
            )
        ),
        boxes(1000),
        p(1000),
    ),
    "nms_combined": (
        lambda b, s: list(
            raw.CombinedNonMaxSuppression(
                boxes=b,
                scores=s,
                max_output_size_per_class=20,
                max_total_size=50,
                iou_threshold=0.5,
                score_threshold=0.2,
            )
        ),
        boxes(500).reshape(1, 500, 1, 4),
        p(1, 500, 20),
    ),
    "encode_png": (lambda a: raw.EncodePng(image=a), smooth(375, 500)),
    "encode_jpeg": (lambda a: raw.EncodeJpeg(image=a), smooth(375, 500)),
    "decode_png": (lambda a: raw.DecodePng(contents=a), encoded(tf.io.encode_png)),
    "decode_jpeg": (lambda a: raw.DecodeJpeg(contents=a), encoded(tf.io.encode_jpeg)),
    "decode_crop_jpeg": (
        lambda a: raw.DecodeAndCropJpeg(contents=a, crop_window=[50, 50, 200, 200]),
        encoded(tf.io.encode_jpeg),
    ),
    "volume_patches": (
        lambda a: raw.ExtractVolumePatches(input=a, ksizes=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID"),
        f(2, 16, 32, 32, 8),
    ),
    # --- variables
    "scatter_add": (update(raw.ScatterAdd, ["ref"], "indices", "updates"), *SCATTERED),
    "scatter_update": (update(raw.ScatterUpdate, ["ref"], "indices", "updates"), *SCATTERED),
    "scatter_max": (update(raw.ScatterMax, ["ref"], "indices", "updates"), *SCATTERED),
    "scatter_nd_add": (
        update(raw.ScatterNdAdd, ["ref"], "indices", "updates"),
        f(10000, 32),
        i32(10000, 2000, 1),
        f(2000, 32),
    ),
    "assign_add": (update(raw.AssignAdd, ["ref"], "value"), f(N), f(N)),
    # --- random numbers
    "sl_normal": (
        lambda: raw.StatelessRandomNormalV2(
            shape=C([100000]), key=C([7], tf.uint64), counter=C([0, 0], tf.uint64), alg=1
        ),
    ),
    "sl_uniform_int": (
        lambda: raw.StatelessRandomUniformIntV2(
            shape=C([100000]), key=C([7], tf.uint64), counter=C([0, 0], tf.uint64), alg=1, minval=0, maxval=1000
        ),
    ),
    "sl_truncated": (
        lambda: raw.StatelessTruncatedNormalV2(
            shape=C([100000]), key=C([7], tf.uint64), counter=C([0, 0], tf.uint64), alg=1
        ),
    ),
    "sl_multinomial": (lambda a: raw.StatelessMultinomial(logits=a, num_samples=1000, seed=[1, 2]), f(20, 50)),
    "sl_gamma": (lambda a: raw.StatelessRandomGammaV2(shape=C([1000, 20]), seed=[1, 2], alpha=a), p(20)),
    "sl_poisson": (
        lambda a: raw.StatelessRandomPoisson(shape=C([1000, 20]), seed=[1, 2], lam=a, dtype=tf.float32),
        p(20) * 20,
    ),
    "sl_binomial": (
        lambda a: raw.StatelessRandomBinomial(shape=C([1000, 20]), seed=[1, 2], counts=C(10.0), probs=a),
        p(20),
    ),
    "sl_shuffle": (
        lambda a: raw.StatelessShuffle(value=a, key=C([7], tf.uint64), counter=C([0, 0], tf.uint64), alg=1),
        f(10000, 8),
    ),
    "gamma_grad": (lambda a, b: raw.RandomGammaGrad(alpha=a, sample=b), p(2000) * 5, p(2000) * 5),
    # --- networks
    "gru_cell": (
        lambda x, h, w, u, b, c: list(raw.GRUBlockCell(x=x, h_prev=h, w_ru=w, w_c=u, b_ru=b, b_c=c)),
        f(32, 128),
        f(32, 128),
        f(256, 256),
        f(256, 128),
        f(256),
        f(128),
    ),
    "fractional_max": (
        lambda a: list(
            raw.FractionalMaxPool(value=a, pooling_ratio=[1.0, 1.44, 1.44, 1.0], deterministic=True, seed=1, seed2=2)
        ),
        f(4, 56, 56, 16),
    ),
    "fractional_avg": (
        lambda a: list(
            raw.FractionalAvgPool(value=a, pooling_ratio=[1.0, 1.44, 1.44, 1.0], deterministic=True, seed=1, seed2=2)
        ),
        f(4, 56, 56, 16),
    ),
    "dilation_filter": (
        lambda a, w, g: raw.Dilation2DBackpropFilter(
            input=a, filter=w, out_backprop=g, strides=[1] * 4, rates=[1] * 4, padding="SAME"
        ),
        f(4, 28, 28, 16),
        f(3, 3, 16),
        f(4, 28, 28, 16),
    ),
    "dilation_input": (
        lambda a, w, g: raw.Dilation2DBackpropInput(
            input=a, filter=w, out_backprop=g, strides=[1] * 4, rates=[1] * 4, padding="SAME"
        ),
        f(4, 28, 28, 16),
        f(3, 3, 16),
        f(4, 28, 28, 16),
    ),
    "maxpool_argmax_grad": (
        lambda a, g: raw.MaxPoolGradWithArgmax(
            input=a,
            grad=g,
            argmax=raw.MaxPoolWithArgmax(input=a, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID").argmax,
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
        ),
        f(8, 28, 28, 64),
        f(8, 14, 14, 64),
    ),
    "maxpool_gradgrad": (
        lambda a, g: raw.MaxPoolGradGrad(
            orig_input=a,
            orig_output=raw.MaxPool(input=a, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
            grad=g,
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
        ),
        f(8, 28, 28, 64),
        f(8, 28, 28, 64),
    ),
    "ctc_beam": (
        lambda a: list(raw.CTCBeamSearchDecoder(inputs=a, sequence_length=C([50] * 8), beam_width=10, top_paths=1))[0],
        f(50, 8, 20),
    ),
    "selu_grad": (lambda g, a: raw.SeluGrad(gradients=g, outputs=a), f(300000), f(300000)),
    "softplus_grad": (lambda g, a: raw.SoftplusGrad(gradients=g, features=a), f(300000), f(300000)),
    "softsign": (lambda a: raw.Softsign(features=a), f(300000)),
    "elu_grad": (lambda g, a: raw.EluGrad(gradients=g, outputs=a), f(300000), f(300000)),
    "mirror_pad_grad": (
        lambda a: raw.MirrorPadGrad(input=a, paddings=[[0, 0], [8, 8], [8, 8], [0, 0]], mode="REFLECT"),
        f(8, 72, 72, 16),
    ),
    # --- the rest
    "edit_distance": (
        lambda i, v, j, w: raw.EditDistance(
            hypothesis_indices=i,
            hypothesis_values=v,
            hypothesis_shape=C([500, 20], tf.int64),
            truth_indices=j,
            truth_values=w,
            truth_shape=C([500, 20], tf.int64),
        ),
        sparse(500, 20, 8000)[0],
        i64(9, 8000),
        sparse(500, 20, 8000)[0],
        i64(9, 8000),
    ),
    "reverse": (lambda a: raw.ReverseV2(tensor=a, axis=[1]), f(1000, 1000)),
    "unravel": (lambda a: raw.UnravelIndex(indices=a, dims=[100, 100, 100]), i32(1000000, 100000)),
    "unique_counts": (lambda a: list(raw.UniqueWithCountsV2(x=a, axis=C([0]))), i64(50, 20000, 2)),
    "in_top_k": (lambda a, t: raw.InTopK(predictions=a, targets=t, k=5), f(1000, 1000), i32(1000, 1000)),
    "broadcast_complex": (lambda a, b: raw.Complex(real=a, imag=b), f(300000), f(300000)),
    "tan": (lambda a: raw.Tan(x=a), f(300000)),
    "asinh": (lambda a: raw.Asinh(x=a), f(300000)),
    "acosh": (lambda a: raw.Acosh(x=a), 1 + p(300000)),
    "cosh": (lambda a: raw.Cosh(x=a), f(300000)),
    "lgamma": (lambda a: raw.Lgamma(x=a), p(100000)),
    "digamma": (lambda a: raw.Digamma(x=a), p(100000)),
    "igammac": (lambda a, x: raw.Igammac(a=a, x=x), p(20000), p(20000)),
    "xlog1py": (lambda a, b: raw.Xlog1py(x=a, y=b), p(300000), p(300000)),
    "mod": (lambda a, b: raw.Mod(x=a, y=b), f(300000) * 9, p(300000)),
    "truncate_div": (lambda a, b: raw.TruncateDiv(x=a, y=b), i32(99, 300000), i32(9, 300000) + 1),
    "expint": (lambda a: raw.Expint(x=a), p(50000) * 5),
    "spence": (lambda a: raw.Spence(x=a), p(50000) * 5),
    "cholesky_grad": (
        lambda a, g: raw.CholeskyGrad(l=a, grad=g),
        np.tril(p(96, 96)) + 3 * np.eye(96, dtype=np.float32),
        f(96, 96),
    ),
    "qr_512": (lambda a: list(raw.Qr(input=a)), f(512, 512)),
    "inverse_512": (lambda a: raw.MatrixInverse(input=a), f(512, 512) + 9 * np.eye(512, dtype=np.float32)),
    "svd_256": (lambda a: list(raw.Svd(input=a)), f(256, 256)),
    "logm": (lambda a: raw.MatrixLogarithm(input=a), (p(32, 32) * 0.02 + np.eye(32)).astype(np.complex64)),
    "fft2d": (lambda a: raw.FFT2D(input=a), c(8, 128, 128)),
    "fft3d": (lambda a: raw.FFT3D(input=a), c(2, 32, 32, 32)),
    "rfft2d": (lambda a: raw.RFFT2D(input=a, fft_length=[128, 128]), f(8, 128, 128)),
    "dense_bincount": (
        lambda a: raw.DenseBincount(input=a, size=C(100), weights=C([], tf.float32)),
        i32(100, 100, 1000),
    ),
    "decode_csv": (
        lambda a: list(raw.DecodeCSV(records=a, record_defaults=[C([0.0]), C([0]), C([""])])),
        words(b"1.5,%d,word", 5000),
    ),
    "histogram_summary": (lambda a: raw.HistogramSummary(tag=C("a"), values=a), f(100000)),
    "image_summary": (lambda a: raw.ImageSummary(tag=C("a"), tensor=a), images(3, 100, 100, 3)),
    "audio_summary": (lambda a: raw.AudioSummaryV2(tag=C("a"), tensor=a, sample_rate=C(44100.0)), f(1, 44100, 2)),
}

# Rules of optimizers: the variable and its slots, the gradient's name, the constants.
RATE, L1, L2 = {"lr": 0.01}, {"l1": 0.01}, {"l2": 0.01}
MEANS = {**RATE, "rho": 0.9, "momentum": 0.9, "epsilon": 0.1}
SIGNS = {**RATE, "sign_decay": 0.9, "beta": 0.9}
ADAMAX = {**RATE, "beta1_power": 0.9, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8}
RULES = {
    "GradientDescent": (["var"], "delta", {"alpha": 0.01}),
    "ProximalGradientDescent": (["var"], "delta", {"alpha": 0.01, **L1, **L2}),
    "Momentum": (["var", "accum"], "grad", {**RATE, "momentum": 0.9}),
    "AdaMax": (["var", "m", "v"], "grad", ADAMAX),
    "Adadelta": (["var", "accum", "accum_update"], "grad", {**RATE, "rho": 0.9, "epsilon": 1e-8}),
    "Adagrad": (["var", "accum"], "grad", RATE),
    "AdagradDA": (
        ["var", "gradient_accumulator", "gradient_squared_accumulator"],
        "grad",
        {**RATE, **L1, **L2, "global_step": np.int64(3)},
    ),
    "AddSign": (["var", "m"], "grad", {**SIGNS, "alpha": 1.0}),
    "PowerSign": (["var", "m"], "grad", {**SIGNS, "logbase": 1.0}),
    "CenteredRMSProp": (["var", "mg", "ms", "mom"], "grad", MEANS),
    "RMSProp": (["var", "ms", "mom"], "grad", MEANS),
    "Ftrl": (["var", "accum", "linear"], "grad", {**RATE, **L1, **L2, "lr_power": -0.5}),
    "ProximalAdagrad": (["var", "accum"], "grad", {**RATE, **L1, **L2}),
}
for rule, (variables, gradient, constants) in RULES.items():
    dense, by_row = getattr(raw, "Apply" + rule), getattr(raw, "SparseApply" + rule, None)
    slots = [0.1 * p(N) for _ in variables]
    CASES["apply_" + rule] = (update(dense, variables, gradient, **constants), *slots, f(N))
    if by_row and gradient == "grad":
        slots = [0.1 * p(10000, 32) for _ in variables]
        CASES["sparse_" + rule] = (
            update(by_row, variables, gradient, "indices", **constants),
            *slots,
            f(2000, 32),
            i32(10000, 2000),
        )
