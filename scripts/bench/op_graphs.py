"""Writes graphs of one op each for scripts/bench-peers, with TensorFlow's own Python library.

    op_graphs.py FOLDER

leaves FOLDER/op_NAME.pb and graphs.json as graphs.py does. Inputs are variables, which no optimizer folds; a run
computes the op once and fetches all of its results.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
raw = tf.raw_ops


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.described = {}
        self.random = np.random.default_rng(1)

    def uniform(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(np.float32)

    def op(self, name, build, *inputs):
        """The graph of `build(*variables)`, which gives a tensor or several; `inputs` are the variables' values."""
        with tf.Graph().as_default() as graph:
            outputs = build(*(v1.Variable(tf.constant(value), use_resource=False) for value in inputs))
            if isinstance(outputs, tf.Tensor):
                outputs = [outputs]
            v1.variables_initializer(v1.global_variables(), name="init")
            name = "op_" + name
            with open(f"{self.folder}/{name}.pb", "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
            self.described[name] = {"init": ["init"], "feeds": {}, "fetches": [y.name for y in outputs], "targets": []}

    # --- convolutions and pooling --------------------------------------------------------------

    def depthwise(self, batch=16, side=56, depth=64, size=3, stride=1):
        images, filters = self.uniform(batch, side, side, depth), self.uniform(size, size, depth, 1)
        gradient = self.uniform(batch, -(-side // stride), -(-side // stride), depth)
        window = {"strides": [1, stride, stride, 1], "padding": "SAME"}
        self.op("depthwise", lambda x, w: raw.DepthwiseConv2dNative(input=x, filter=w, **window), images, filters)
        self.op("depthwise_data", lambda w, d: raw.DepthwiseConv2dNativeBackpropInput(
            input_sizes=images.shape, filter=w, out_backprop=d, **window), filters, gradient)
        self.op("depthwise_filter", lambda x, d: raw.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=filters.shape, out_backprop=d, **window), images, gradient)

    def conv3d(self, batch=4, planes=16, side=28, depth=16, size=3, outputs=32):
        volumes, filters = self.uniform(batch, planes, side, side, depth), self.uniform(size, size, size, depth, outputs)
        gradient = self.uniform(batch, planes, side, side, outputs)
        window = {"strides": [1] * 5, "padding": "SAME"}
        self.op("conv3d", lambda x, w: raw.Conv3D(input=x, filter=w, **window), volumes, filters)
        self.op("conv3d_data", lambda w, d: raw.Conv3DBackpropInputV2(
            input_sizes=volumes.shape, filter=w, out_backprop=d, **window), filters, gradient)
        self.op("conv3d_filter", lambda x, d: raw.Conv3DBackpropFilterV2(
            input=x, filter_sizes=filters.shape, out_backprop=d, **window), volumes, gradient)

    def pool3d(self, batch=4, planes=16, side=28, depth=32):
        volumes = self.uniform(batch, planes, side, side, depth)
        for size, stride in ((2, 2), (3, 1)):
            window = {"ksize": [1, size, size, size, 1], "strides": [1, stride, stride, stride, 1], "padding": "SAME"}
            of = f"_{size}_s{stride}"
            pooled = self.uniform(batch, planes // stride, side // stride, side // stride, depth)
            self.op("max_pool3d" + of, lambda x: raw.MaxPool3D(input=x, **window), volumes)
            self.op("avg_pool3d" + of, lambda x: raw.AvgPool3D(input=x, **window), volumes)
            self.op("max_pool3d_grad" + of, lambda x, y, d: raw.MaxPool3DGrad(
                orig_input=x, orig_output=y, grad=d, **window), volumes, max_of(volumes, window), pooled)
            self.op("avg_pool3d_grad" + of, lambda d: raw.AvgPool3DGrad(
                orig_input_shape=volumes.shape, grad=d, **window), pooled)

    def lrn(self, batch=16, side=28, depth=64):
        images = self.uniform(batch, side, side, depth)
        for beta in (0.5, 0.75):
            norm = {"depth_radius": 5, "bias": 1.0, "alpha": 1e-4, "beta": beta}
            self.op(f"lrn_{beta}", lambda x: raw.LRN(input=x, **norm), images)
            self.op(f"lrn_grad_{beta}", lambda d, x, y: raw.LRNGrad(
                input_grads=d, input_image=x, output_image=y, **norm), self.uniform(*images.shape), images, 0.9 * images)

    # --- products and recurrent networks ---------------------------------------------------------

    def einsum(self):
        def equation(name, text, *shapes):
            self.op("einsum_" + name, lambda *x: raw.Einsum(inputs=x, equation=text), *(self.uniform(*s) for s in shapes))

        heads = (8, 128, 8, 64)  # batch, position, head, unit
        equation("attention_scores", "bqhd,bkhd->bhqk", heads, heads)
        equation("attention_values", "bhqk,bkhd->bqhd", (8, 8, 128, 128), heads)
        equation("projection", "bsd,dhu->bshu", (8, 128, 512), (512, 8, 64))
        equation("batch", "bij,bjk->bik", (32, 128, 128), (32, 128, 128))
        equation("transposed", "ij,kj->ki", (512, 512), (512, 512))
        equation("trace", "bii->b", (64, 256, 256))

    def lstm(self, steps=32, batch=32, inputs=128, units=128):
        zeros = np.zeros((batch, units), np.float32)
        x, w, b = self.uniform(steps, batch, inputs), 0.1 * self.uniform(inputs + units, 4 * units), self.uniform(4 * units)
        peephole = np.zeros(units, np.float32)
        weights = lambda w, b, p: {"w": w, "wci": p, "wcf": p, "wco": p, "b": b}
        self.op("lstm_block_cell", lambda x, c, h, w, b, p: list(raw.LSTMBlockCell(
            x=x, cs_prev=c, h_prev=h, **weights(w, b, p))), x[0], zeros, zeros, w, b, peephole)
        length = tf.constant(steps, tf.int64)

        def block(x, c, h, w, b, p):
            return list(raw.BlockLSTM(seq_len_max=tf.constant(steps, tf.int64), x=x, cs_prev=c, h_prev=h,
                                      **weights(w, b, p)))

        self.op("block_lstm", block, x, zeros, zeros, w, b, peephole)
        results = [np.array(y) for y in raw.BlockLSTM(seq_len_max=length, x=x, cs_prev=zeros, h_prev=zeros,
                                                      **weights(w, b, peephole))]
        gradients = [self.uniform(*x.shape[:2], units) for _ in range(2)]

        def gradient(x, c, h, w, b, p, i, cs, f, o, ci, co, hs, cs_grad, h_grad):
            return list(raw.BlockLSTMGrad(
                seq_len_max=tf.constant(steps, tf.int64), x=x, cs_prev=c, h_prev=h, **weights(w, b, p), i=i, cs=cs, f=f,
                o=o, ci=ci, co=co, h=hs, cs_grad=cs_grad, h_grad=h_grad, use_peephole=False))

        self.op("block_lstm_grad", gradient, x, zeros, zeros, w, b, peephole, *results, *gradients)

    # --- sums over rows, order, strings -----------------------------------------------------------

    def segments(self, rows=20000, columns=64, count=2000):
        data, ids = self.uniform(rows, columns), self.random.integers(count, size=rows).astype(np.int32)
        self.op("segment_sum", lambda x, i: raw.SegmentSum(data=x, segment_ids=i), data, np.sort(ids))
        self.op("unsorted_segment_sum", lambda x, i: raw.UnsortedSegmentSum(
            data=x, segment_ids=i, num_segments=count), data, ids)
        self.op("sparse_segment_sum", lambda x, j, i: raw.SparseSegmentSum(data=x, indices=j, segment_ids=i),
                data, self.random.permutation(rows).astype(np.int32), np.sort(ids))

    def sparse(self, rows=2000, inner=2000, columns=128, density=0.01):
        at = np.argwhere(self.random.random((rows, inner)) < density)
        for name, transposed in (("", False), ("_adjoint", True)):
            self.op("sparse_dense" + name, lambda i, v, b: raw.SparseTensorDenseMatMul(
                a_indices=i, a_values=v, a_shape=tf.constant([rows, inner], tf.int64), b=b, adjoint_a=transposed),
                at, self.uniform(len(at)), self.uniform(inner, columns))

    def top_k(self):
        for rows, columns, k in ((128, 10000, 10), (1, 1000000, 100), (1000, 1000, 1), (32, 1000, 1000)):
            self.op(f"top_{k}_of_{rows}x{columns}", lambda x: list(raw.TopKV2(input=x, k=k)), self.uniform(rows, columns))

    def strings(self, count=10000):
        words = np.array([b"word %d of many words" % i for i in self.random.integers(1000000, size=count)], dtype=object)
        self.op("string_hash", lambda s: raw.StringToHashBucketFast(input=s, num_buckets=1000), words)
        self.op("string_split", lambda s: list(raw.StringSplitV2(input=s, sep="")), words)
        self.op("string_split_at", lambda s: list(raw.StringSplitV2(input=s, sep="of")), words)

    def fft(self):
        for rows, size in ((512, 256), (128, 1024), (8, 65536), (128, 1000), (128, 1009), (8, 44100)):
            x = self.uniform(rows, size) + 1j * self.uniform(rows, size)
            self.op(f"fft_{rows}x{size}", lambda x: raw.FFT(input=x), x.astype(np.complex64))
        for side in (256, 240, 251):
            self.op(f"rfft2d_16x{side}x{side}", lambda x: raw.RFFT2D(input=x, fft_length=[side, side]),
                    self.uniform(16, side, side))
        self.op("irfft_128x1024", lambda x: raw.IRFFT(input=x, fft_length=[1024]),
                (self.uniform(128, 513) + 1j * self.uniform(128, 513)).astype(np.complex64))

    def functions(self, count=100000):
        x = self.random.uniform(-0.9, 0.9, count)
        for op in (raw.Acos, raw.Asin, raw.Atan, raw.Atanh, raw.Erf, raw.Erfc, raw.Erfinv, raw.Exp, raw.Expm1, raw.Log,
                   raw.Log1p, raw.Ndtri, raw.Sigmoid, raw.Sin, raw.Tanh):
            name = op.__name__.lower()
            values = np.abs(x) if op in (raw.Log, raw.Ndtri) else x
            self.op(f"{name}_float", lambda x: op(x=x), values.astype(np.float32))
            self.op(f"{name}_double", lambda x: op(x=x), values)
        for type in (np.float32, np.float64):
            name = "float" if type == np.float32 else "double"
            self.op(f"atan2_{name}", lambda x, y: raw.Atan2(y=y, x=x), x.astype(type), (x[::-1] * 3).astype(type))
            self.op(f"elu_{name}", lambda x: raw.Elu(features=x), (x * 5).astype(type))
            self.op(f"softplus_{name}", lambda x: raw.Softplus(features=x), (x * 5).astype(type))

    # --- half and bfloat16 -----------------------------------------------------------------------

    def narrow(self, size=512, batch=8, side=28, depth=64):
        """Products, convolutions and batch normalization in each type."""
        for dtype in (tf.float32, tf.bfloat16, tf.half):
            suffix = "_" + {tf.float32: "float"}.get(dtype, dtype.name)
            array = lambda *shape: self.uniform(*shape).astype(dtype.as_numpy_dtype)
            self.op(f"matmul_{size}" + suffix, lambda a, b: raw.MatMul(a=a, b=b), array(size, size), array(size, size))
            self.op("matmul_100x784x200" + suffix, lambda a, b: raw.MatMul(a=a, b=b), array(100, 784), array(784, 200))
            self.op("batch_matmul" + suffix, lambda a, b: raw.BatchMatMulV2(x=a, y=b, adj_y=True),
                    array(64, 128, 64), array(64, 128, 64))
            heads = (8, 128, 8, 64)  # batch, position, head, unit
            self.op("einsum_scores" + suffix, lambda q, k: raw.Einsum(inputs=[q, k], equation="bqhd,bkhd->bhqk"),
                    array(*heads), array(*heads))
            self.op("einsum_values" + suffix, lambda p, v: raw.Einsum(inputs=[p, v], equation="bhqk,bkhd->bqhd"),
                    array(8, 8, 128, 128), array(*heads))
            images, filters = array(batch, side, side, depth), array(3, 3, depth, depth)
            window = {"strides": [1] * 4, "padding": "SAME"}
            self.op("conv2d" + suffix, lambda x, w: raw.Conv2D(input=x, filter=w, **window), images, filters)
            self.op("conv2d_data" + suffix, lambda w, d: raw.Conv2DBackpropInput(
                input_sizes=images.shape, filter=w, out_backprop=d, **window), filters, images)
            self.op("conv2d_filter" + suffix, lambda x, d: raw.Conv2DBackpropFilter(
                input=x, filter_sizes=filters.shape, out_backprop=d, **window), images, images)
            for training in (True, False):
                empty = np.zeros(0 if training else depth, np.float32)
                self.op("batch_norm" + ("" if training else "_inference") + suffix,
                        lambda x, scale, offset: list(raw.FusedBatchNormV3(
                            x=x, scale=scale, offset=offset, mean=empty, variance=empty,
                            is_training=training))[:3 if training else 1],
                        images, self.uniform(depth), self.uniform(depth))
            self.op("batch_norm_grad" + suffix, lambda d, x, scale, mean, variance: list(raw.FusedBatchNormGradV3(
                y_backprop=d, x=x, scale=scale, reserve_space_1=mean, reserve_space_2=variance,
                reserve_space_3=np.zeros(0, np.float32)))[:3],
                array(*images.shape), images, self.uniform(depth), self.uniform(depth), 2 + self.uniform(depth))


    # --- integers of 8 bits ------------------------------------------------------------------------

    def quantized(self):
        def op(name, build, *shapes):
            """Of quint8, from -1 to 1; variables are of uint8, which TensorFlow can initialize."""
            values = [self.random.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
            self.op("quantized_" + name, lambda *x: list(build(*(tf.bitcast(v, tf.quint8) for v in x))), *values)

        matmul_range = {"min_a": -1.0, "max_a": 1.0, "min_b": -1.0, "max_b": 1.0}
        matmul = lambda a, b: raw.QuantizedMatMul(a=a, b=b, Toutput=tf.qint32, **matmul_range)
        op("matmul_512", matmul, (512, 512), (512, 512))
        op("matmul_100x784x200", matmul, (100, 784), (784, 200))
        op("matmul_1x1024x1024", matmul, (1, 1024), (1024, 1024))
        conv_range = {"min_input": -1.0, "max_input": 1.0, "min_filter": -1.0, "max_filter": 1.0}
        conv = lambda x, w: raw.QuantizedConv2D(input=x, filter=w, out_type=tf.qint32, strides=[1] * 4, padding="SAME", **conv_range)
        op("conv2d_3x3", conv, (1, 28, 28, 64), (3, 3, 64, 64))
        op("conv2d_1x1", conv, (4, 14, 14, 128), (1, 1, 128, 128))
        op("conv2d_7x7", conv, (1, 64, 64, 3), (7, 7, 3, 32))


def max_of(volumes, window):
    return np.array(raw.MaxPool3D(input=volumes, **window))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    writer = Writer(folder)
    for family in ("depthwise", "conv3d", "pool3d", "lrn", "einsum", "lstm", "segments", "sparse", "top_k", "strings", "fft",
                   "functions", "narrow", "quantized"):
        getattr(writer, family)()
    with open(f"{folder}/graphs.json", "w") as file:
        json.dump(writer.described, file, indent=1)


if __name__ == "__main__":
    main()
