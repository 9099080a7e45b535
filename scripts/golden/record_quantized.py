#!/usr/bin/env python3
"""scripts/golden/record_quantized.py [--seed S] OUT.pb.gz

tests/golden/quantized.pb.gz: ops on quantized types, at random, and what TensorFlow 2.21 gives for them. A case on which TensorFlow
dies is left out, and said.

    scripts/golden/record_quantized.py --op-defs OUT.pbtxt

tests/graph/testdata/quantized_opdefs.pbtxt: the definitions of the ops that the catalogue of ops lacks.
"""

import argparse
import random
import sys

from google.protobuf import text_format
from recorder import Recorder, bytes_of, golden, np, tf, v1, write
from tensorflow.core.framework import attr_value_pb2, op_def_pb2
from tensorflow.python.framework import op_def_registry

OPS = """Dequantize FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars
FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient QuantizeAndDequantize
QuantizeAndDequantizeV2
QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 QuantizeAndDequantizeV4Grad QuantizeDownAndShrinkRange QuantizeV2 QuantizedAdd
QuantizedAvgPool QuantizedBiasAdd QuantizedConcat QuantizedConcatV2 QuantizedConv2D QuantizedMatMul
QuantizedMatMulWithBias QuantizedMatMulWithBiasAndDequantize QuantizedMatMulWithBiasAndRelu
QuantizedMatMulWithBiasAndReluAndRequantize QuantizedMatMulWithBiasAndRequantize QuantizedMaxPool QuantizedMul QuantizedRelu
QuantizedRelu6 QuantizedReluX QuantizedReshape Requantize RequantizationRange QuantizedBatchNormWithGlobalNormalization
QuantizedInstanceNorm QuantizedResizeBilinear RequantizePerChannel RequantizationRangePerChannel UniformDequantize UniformQuantize
UniformQuantizedClipByValue UniformRequantize""".split()
INTEGERS = {tf.qint8: np.int8, tf.quint8: np.uint8, tf.qint16: np.int16, tf.quint16: np.uint16, tf.qint32: np.int32}
QUANTIZED = list(INTEGERS)


def op_defs():
    ops = op_def_pb2.OpList()
    for name in sorted(OPS):
        definition = ops.op.add()
        definition.CopyFrom(op_def_registry.get(name))
        for part in (definition, *definition.input_arg, *definition.output_arg, *definition.attr):
            for field in ("summary", "description"):
                if hasattr(part, field):
                    part.ClearField(field)
    return text_format.MessageToString(ops)


def attribute(value):
    if isinstance(value, tf.DType):
        return attr_value_pb2.AttrValue(type=value.as_datatype_enum)
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    if isinstance(value, float):
        return attr_value_pb2.AttrValue(f=value)
    if isinstance(value, str):
        return attr_value_pb2.AttrValue(s=value.encode())
    return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=value))


class Inputs(list):
    """Arrays and their types, if those are not the arrays' own."""

    def add(self, value, dtype=None):
        value = np.asarray(value)
        self.append((value, dtype or tf.as_dtype(value.dtype)))
        return self

    def range(self, *ranges):
        for low, high in ranges:
            self.add(np.float32(low)).add(np.float32(high))
        return self


class Cases:
    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.cases, self.known, self.producer = [], True, tf.version.GRAPH_DEF_VERSION

    def op(self, op, inputs, gradient=False, tolerance=(0, 0), **attrs):
        """A case of one node. Shapes are known to the graph, or else found by the kernel only; TensorFlow's Dequantize needs the
        rank."""
        unknown_rank = op != "Dequantize" or attrs.get("axis", -1) < 0
        graph, case = v1.GraphDef(), golden.Case(name=f"{op}/{len(self.cases)}", op=op, tag=["quantized"])
        graph.versions.producer = self.producer
        node, definition = v1.NodeDef(name="op", op=op), op_def_registry.get(op)
        step = golden.Step()
        types = {}
        lists = {a.name: len(inputs) for a in definition.input_arg if a.number_attr}
        arguments = [a for a in definition.input_arg for _ in range(attrs["N"] if a.name in lists else 1)]
        for i, (value, dtype) in enumerate(inputs):
            placeholder = graph.node.add(name=f"x{i}", op="Placeholder")
            placeholder.attr["dtype"].type = dtype.as_datatype_enum
            shape = value.shape if self.known else None if unknown_rank else [None] * value.ndim
            placeholder.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
            node.input.append(placeholder.name)
            step.feed.add(name=f"x{i}:0", tensor=bytes_of(value, dtype))
            if arguments[i].type_attr:
                types[arguments[i].type_attr] = dtype
        for name, value in {**types, **attrs}.items():
            node.attr[name].CopyFrom(attribute(value))
        graph.node.append(node)
        case.graph = graph.SerializeToString(deterministic=True)
        for i in range(len(definition.output_arg)):
            step.fetch.append(f"op:{i}")
            case.shape.add(tensor=f"op:{i}")
        case.step.append(step)
        case.rtol, case.atol = tolerance
        if gradient:
            case.gradient.add(y=["op:0"], x=[f"x{i}:0" for i in range(len(inputs))], feed=step.feed)
        self.cases.append(case)

    def graph(self, name, build):
        """A case of a graph that `build` makes; it gives feeds and fetches."""
        graph = tf.Graph()
        with graph.as_default():
            try:
                feeds, fetches = build()
            except TypeError:  # not of this type
                return
        case = golden.Case(name=f"{name}/{len(self.cases)}", op=name, tag=["quantized"])
        case.graph = graph.as_graph_def().SerializeToString(deterministic=True)
        step = case.step.add(fetch=[f.name for f in fetches])
        for placeholder, value in feeds:
            step.feed.add(name=placeholder.name, tensor=bytes_of(value, placeholder.dtype))
        self.cases.append(case)

    # --- what is drawn ---

    def shape(self, least=0, most=4):
        return tuple(self.random.choice([1, 2, 3, 4, 5]) for _ in range(self.random.randint(least, most)))

    def integers(self, dtype, shape):
        limits = np.iinfo(INTEGERS[dtype])
        values = self.numbers.integers(limits.min, limits.max, size=shape, endpoint=True).astype(INTEGERS[dtype])
        if values.size > 2:
            values.reshape(-1)[:2] = limits.min, limits.max
        return values

    def sums(self, shape):
        """As products of 8 bits have them, and larger."""
        scale = self.random.choice([1 << 8, 1 << 16, 1 << 24, (1 << 31) - 1])
        return self.numbers.integers(-scale, scale, size=shape).astype(np.int32)

    def range(self):
        """Of all kinds: with 0 in it and without, narrow, far away."""
        low, high = sorted(float(np.float32(self.random.uniform(-10, 10))) for _ in range(2))
        return self.random.choice([(low, high), (-abs(low), abs(high)), (-abs(low), abs(high)), (0.0, abs(high)), (-abs(low), 0.0),
                                   (-6.0, 6.0), (-1.0, 1.0), (0.0, 255.0), (-128.0, 127.0), (0.0, 1e-3), (-1e4, 3e4)])

    def holding_zero(self):
        low, high = self.range()
        return min(low, 0.0), max(high, 0.0) + (1.0 if low >= 0 >= high else 0.0)

    def reals(self, low, high, shape):
        """In the range and beside it, and just between two integers."""
        values = self.numbers.uniform(low - (high - low) / 8, high + (high - low) / 8, size=shape)
        halves = np.round(values * 2) / 2
        return np.where(self.numbers.random(shape) < .3, halves, values).astype(np.float32)

    # --- ops ---

    def quantize(self):
        for dtype in QUANTIZED:
            for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
                for _ in range(5):
                    low, high = self.range()
                    values = self.reals(low, high, self.shape())
                    if dtype == tf.qint32 and mode != "MIN_FIRST":  # no float is the largest one, and TensorFlow casts a larger one
                        values = np.minimum(values, np.float32((low + 3 * high) / 4)) if high > 0 else np.minimum(values, low)
                    rounding = self.random.choice(["HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN" if mode == "SCALED" else "HALF_AWAY_FROM_ZERO"])
                    self.op("QuantizeV2", Inputs().add(values).range((low, high)), T=dtype, mode=mode, round_mode=rounding,
                            narrow_range=self.random.random() < .5, ensure_minimum_range=self.random.choice([.01, .01, .1, 1e-4]))
                if mode != "MIN_FIRST":
                    for _ in range(4):
                        values, lows, highs, axis = self.channels()
                        if len(lows) == 1:  # its shape function says a vector, its kernel makes a scalar
                            continue
                        if dtype == tf.qint32:
                            values, highs = np.minimum(values, 0), np.maximum(highs, 1)
                        self.op("QuantizeV2", Inputs().add(values).add(lows).add(highs), T=dtype, mode=mode, axis=axis)
        x, t = np.float32([[1, 2], [3, 4]]), tf.quint8
        one, two = np.float32([0]), np.float32([0, 1])
        self.op("QuantizeV2", Inputs().add(x).range((2, 1)), T=t)
        self.op("QuantizeV2", Inputs().add(x).range((0, 0)), T=t)
        self.op("QuantizeV2", Inputs().add(x).range((0, 1)), T=t, round_mode="HALF_TO_EVEN")
        self.op("QuantizeV2", Inputs().add(x).range((0, 1)), T=t, mode="SCALED", axis=1)
        self.op("QuantizeV2", Inputs().add(x).add(one).add(two), T=t, mode="SCALED", axis=1)
        self.op("QuantizeV2", Inputs().add(x).add(two).add(one), T=t, mode="SCALED", axis=1)
        self.op("QuantizeV2", Inputs().add(x).add(two).add(two + 1), T=t, mode="SCALED", axis=2)
        self.op("QuantizeV2", Inputs().add(x).add(two).add(two + 1), T=t, mode="MIN_FIRST", axis=1)
        self.op("QuantizeV2", Inputs().add(x).add(two).add(two + 1), T=t)
        self.op("QuantizeV2", Inputs().add(x).add(two).add(two - 1), T=t, mode="SCALED", axis=0)
        self.op("QuantizeV2", Inputs().add(x).range((0, 1)), T=t, axis=-2)
        self.op("QuantizeV2", Inputs().add(x[:0]).range((0, 1)), T=t)

    def channels(self):
        shape = self.shape(1)
        axis = self.random.randrange(len(shape))
        ranges = [self.range() for _ in range(shape[axis])]
        lows, highs = (np.float32(values) for values in zip(*ranges))
        return self.reals(min(lows), max(highs), shape), lows, highs, axis

    def dequantize(self):
        for dtype in QUANTIZED:
            for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
                # The largest qint32 becomes a float, and that an int, of which it is too large.
                most = np.iinfo(INTEGERS[dtype]).max - (128 if dtype == tf.qint32 else 0)
                for _ in range(4):
                    integers = np.minimum(self.integers(dtype, self.shape()), INTEGERS[dtype](most))
                    self.op("Dequantize", Inputs().add(integers, dtype).range(self.range()), mode=mode,
                            narrow_range=self.random.random() < .5)
                for _ in range(2):
                    values, lows, highs, axis = self.channels()
                    integers = np.minimum(self.integers(dtype, values.shape), INTEGERS[dtype](most))
                    self.op("Dequantize", Inputs().add(integers, dtype).add(lows).add(highs), mode=mode,
                            axis=axis, narrow_range=self.random.random() < .5)
            self.op("Dequantize", Inputs().add(self.integers(dtype, (3, 4)), dtype).range(self.range()), dtype=tf.bfloat16)
        q, two = np.uint8([[1, 2], [3, 4]]), np.float32([0, 1])
        for attrs in ({"mode": "MIN_FIRST"}, {"mode": "SCALED"}, {"axis": 3}, {"axis": -2}):
            self.op("Dequantize", Inputs().add(q, tf.quint8).range((0, 1)), dtype=tf.bfloat16, **attrs)
        self.op("Dequantize", Inputs().add(q, tf.quint8).add(two).add(two[:1]), axis=0)
        self.op("Dequantize", Inputs().add(q, tf.quint8).add(two).add(two + 1))
        self.op("Dequantize", Inputs().add(q[:0], tf.quint8).range((0, 1)))
        self.op("Dequantize", Inputs().add(q, tf.quint8).range((3, 1)))

    def requantize(self):
        for _ in range(12):
            for target in (tf.quint8, tf.qint8):
                self.op("Requantize", Inputs().add(self.sums(self.shape()), tf.qint32).range(self.holding_zero(), self.holding_zero()),
                        out_type=target)
            self.op("RequantizationRange", Inputs().add(self.sums(self.shape()), tf.qint32).range(self.range()))
            self.op("QuantizeDownAndShrinkRange", Inputs().add(self.sums(self.shape()), tf.qint32).range(self.range()),
                    out_type=tf.quint8)
        q, two = np.int32([1 << 20, -7]), np.float32([0, 1])
        for requested in ((0, 0), (1, 2), (-2, -1), (2, 1)):
            self.op("Requantize", Inputs().add(q, tf.qint32).range((-1, 1), requested), out_type=tf.quint8)
        self.op("Requantize", Inputs().add(q[:0], tf.qint32).range((-1, 1), (0, 1)), out_type=tf.quint8)
        self.op("RequantizationRange", Inputs().add(q[:0], tf.qint32).range((-1, 1)))
        self.op("Requantize", Inputs().add(q, tf.qint32).range((-1, 1)).add(two).add(np.float32(1)), out_type=tf.quint8)
        self.op("QuantizeDownAndShrinkRange", Inputs().add(q, tf.qint32).add(two[:0]).add(np.float32(1)), out_type=tf.quint8)

    def products(self):
        for i in range(40):
            m, n, k = (self.random.choice([1, 2, 3, 7, 16, 40]) for _ in range(3))
            if i % 8 == 0:
                k = self.random.choice([257, 600, 1000])
            a, b = (m, k), (k, n)
            transposed = [self.random.random() < .5 for _ in range(2)]
            a, b = (s[::-1] if t else s for s, t in zip((a, b), transposed))
            ranges = (self.range() if i % 4 == 0 else self.holding_zero() for _ in range(2))
            self.op("QuantizedMatMul", Inputs().add(self.integers(tf.quint8, a), tf.quint8).add(self.integers(tf.quint8, b), tf.quint8)
                    .range(*ranges), transpose_a=transposed[0], transpose_b=transposed[1], Toutput=tf.qint32)
        a, b, t = np.uint8([[1, 2, 3]]), np.uint8([[1], [2], [3]]), tf.quint8
        fine, two = (0.0, 1.0), np.float32([0, 1])
        for x, y in ((a, a), (a[0], b), (a, b[0]), (a[:0], b), (a, b[:, :0])):
            self.op("QuantizedMatMul", Inputs().add(x, t).add(y, t).range(fine, fine))
        for first, second in (((1, 1), fine), (fine, (2, 1)), ((0, 0), (0, 0))):
            self.op("QuantizedMatMul", Inputs().add(a, t).add(b, t).range(first, second))
        for wrong in range(4):
            inputs = Inputs().add(a, t).add(b, t).range(fine, fine)
            inputs[2 + wrong] = (two, tf.float32)
            self.op("QuantizedMatMul", inputs)
        for i in range(30):
            rows, columns = self.random.randint(1, 8), self.random.randint(1, 8)
            depth, out, stride = self.random.choice([1, 2, 3, 9]), self.random.choice([1, 2, 5]), self.random.randint(1, 3)
            padding = self.random.choice(["SAME", "VALID"])
            kernel = [self.random.randint(1, 4) for _ in range(2)]
            if padding == "VALID":
                kernel = [min(kernel[0], rows), min(kernel[1], columns)]
            # Where 0 is above the range, TensorFlow pads images with another number.
            low, high = self.range()
            images = (low, max(high, 0.0) if high > 0 or padding == "VALID" else 1.0)
            self.op("QuantizedConv2D", Inputs().add(self.integers(tf.quint8, (self.random.randint(1, 2), rows, columns, depth)), t)
                    .add(self.integers(tf.quint8, (*kernel, depth, out)), t).range(images, self.range()),
                    strides=[1, stride, stride, 1], padding=padding, out_type=tf.qint32)
        image, kernel, fine = self.integers(t, (1, 4, 4, 2)), self.integers(t, (2, 2, 2, 3)), (-1.0, 1.0)
        for x, f in ((image[0], kernel), (image, kernel[0]), (image[..., :1], kernel), (image, kernel[:, :, :, :0]), (image[:0], kernel),
                     (image[:, :1], kernel)):
            self.op("QuantizedConv2D", Inputs().add(x, t).add(f, t).range(fine, fine), strides=[1, 1, 1, 1], padding="VALID")
        for strides in ([1, 1, 2, 1], [1, 0, 0, 1], [2, 1, 1, 1], [1, 1, 1, 2], [1, 1, 1]):
            self.op("QuantizedConv2D", Inputs().add(image, t).add(kernel, t).range(fine, fine), strides=strides, padding="VALID")
        for ranges in (((1, 1), fine), (fine, (2, 1))):
            self.op("QuantizedConv2D", Inputs().add(image, t).add(kernel, t).range(*ranges), strides=[1, 1, 1, 1], padding="VALID")
        for wrong in range(4):
            inputs = Inputs().add(image, t).add(kernel, t).range(fine, fine)
            inputs[2 + wrong] = (two, tf.float32)
            self.op("QuantizedConv2D", inputs, strides=[1, 1, 1, 1], padding="VALID")
        self.op("QuantizedConv2D", Inputs().add(image, t).add(kernel, t).range(fine, fine), strides=[1, 1, 1, 1], padding="SAME",
                dilations=[1, 2, 2, 1])

    def arithmetic(self):
        t = tf.quint8
        for _ in range(10):
            for dtype in (tf.quint8, tf.qint8):
                shape = self.shape(2)
                self.op("QuantizedBiasAdd", Inputs().add(self.integers(dtype, shape), dtype)
                        .add(self.integers(dtype, shape[-1:]), dtype).range(self.range(), self.range()), out_type=tf.qint32)
            for dtype in (tf.quint8, tf.qint32):
                for op in ("QuantizedRelu", "QuantizedRelu6"):
                    self.op(op, Inputs().add(self.integers(dtype, self.shape()), dtype).range(self.range()), out_type=dtype)
            for op in ("QuantizedAdd", "QuantizedMul"):
                shape = self.shape()
                other = self.random.choice([shape, (), shape[1:], (1,)])
                x, y = self.random.sample([shape, other], 2)
                self.op(op, Inputs().add(self.integers(t, x), t).add(self.integers(t, y), t).range(self.range(), self.range()),
                        Toutput=tf.qint32)
        q, two, fine = np.uint8([[1, 2, 3]]), np.float32([0, 1]), (0.0, 1.0)
        for op in ("QuantizedAdd", "QuantizedMul"):
            for x, y, first, second in ((q, q[:, :2], fine, fine), (q, q, (1, 1), fine), (q, q, fine, (2, 1)), (q[:0], q[:0], fine, fine),
                                        (q, q[:, :0], fine, fine)):
                self.op(op, Inputs().add(x, t).add(y, t).range(first, second))
            for wrong in range(4):
                inputs = Inputs().add(q, t).add(q, t).range(fine, fine)
                inputs[2 + wrong] = (two, tf.float32)
                self.op(op, inputs)
        for x, y in ((q[0], q[0]), (q, q[0, :2]), (q, q), (q[:0], q[0])):
            self.op("QuantizedBiasAdd", Inputs().add(x, t).add(y, t).range(fine, fine), out_type=tf.qint32)
        for op in ("QuantizedRelu", "QuantizedRelu6"):
            self.op(op, Inputs().add(q, t).add(two).add(two), out_type=t)
            self.op(op, Inputs().add(q, t).range((1, 1)), out_type=t)

    def shaped(self):
        for _ in range(8):
            for dtype in (tf.quint8, tf.qint8):
                for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
                    shape = tuple(self.random.randint(1, 6) for _ in range(4))
                    window, stride = (self.random.randint(1, min(3, *shape[1:3])) for _ in range(2))
                    self.op(op, Inputs().add(self.integers(dtype, shape), dtype).range(self.range()), ksize=[1, window, window, 1],
                            strides=[1, stride, stride, 1], padding=self.random.choice(["SAME", "VALID"]))
            for dtype in (tf.quint8, tf.qint32):
                shape = self.shape(1)
                self.op("QuantizedReshape", Inputs().add(self.integers(dtype, shape), dtype).add(np.int32([-1, shape[-1]]))
                        .range(self.range()))
                axis, n = self.random.randrange(len(shape)), self.random.randint(2, 3)
                inputs = Inputs().add(np.int32(axis))
                for _ in range(n):
                    size = self.random.randint(1, 3)  # after an empty one TensorFlow confuses the ranges
                    inputs.add(self.integers(dtype, shape[:axis] + (size,) + shape[axis + 1:]), dtype)
                ranges = [self.range()] * n if self.random.random() < .3 else [self.range() for _ in range(n)]
                for values in zip(*ranges):
                    for value in values:
                        inputs.add(np.float32(value))
                self.op("QuantizedConcat", inputs, N=n)
        q, fine, two, t = self.integers(tf.quint8, (1, 4, 4, 2)), (0.0, 1.0), np.float32([0, 1]), tf.quint8
        for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
            for ksize, strides in (([1, 1, 1, 2], [1, 1, 1, 2]), ([2, 1, 1, 1], [1, 1, 1, 1]), ([1, 5, 5, 1], [1, 1, 1, 1]),
                                   ([1, 2, 2], [1, 1, 1, 1]), ([1, 0, 1, 1], [1, 1, 1, 1]), ([1, 1, 1, 1], [1, 0, 1, 1])):
                self.op(op, Inputs().add(q, t).range(fine), ksize=ksize, strides=strides, padding="VALID")
            self.op(op, Inputs().add(q[0], t).range(fine), ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID")
            self.op(op, Inputs().add(q, t).add(two).add(two), ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID")
        for shape in ([5, -1], [-1, -1], [32], [-2, 16]):
            self.op("QuantizedReshape", Inputs().add(q, t).add(np.int32(shape)).range(fine))
        self.op("QuantizedReshape", Inputs().add(q, t).add(np.int32([32])).add(two).add(two))
        for axis, other in ((4, q), (-5, q), (3, q[:, :2]), (3, q[0])):
            inputs = Inputs().add(np.int32(axis)).add(q, t).add(other, t)
            for value in (0, 0, 1, 1):
                inputs.add(np.float32(value))
            self.op("QuantizedConcat", inputs, N=2)

    def simulated(self):
        for _ in range(12):
            for dtype in (np.float32, np.float64):
                low, high = self.range()
                common = {"signed_input": self.random.random() < .5, "narrow_range": self.random.random() < .5}
                bits = self.random.choice([1, 2, 4, 8, 8, 16, 31])
                rounding = self.random.choice(["HALF_TO_EVEN", "HALF_UP"])
                given = self.random.random() < .6
                values = self.reals(low, high, self.shape(1)).astype(dtype)
                inputs = Inputs().add(values).add(dtype(low)).add(dtype(high))
                self.op("QuantizeAndDequantizeV2", inputs, gradient=True, num_bits=bits, round_mode=rounding, range_given=given, **common)
                self.op("QuantizeAndDequantizeV4", inputs, gradient=True, num_bits=bits, round_mode=rounding, range_given=given, **common)
                self.op("QuantizeAndDequantizeV3", Inputs(inputs).add(np.int32(bits)), gradient=True, range_given=given, **common)
                values, lows, highs, axis = self.channels()
                inputs = Inputs().add(values.astype(dtype)).add(lows.astype(dtype)).add(highs.astype(dtype))
                # TensorFlow 2.21's V2 and V4 take an axis or a range, but not both.
                self.op("QuantizeAndDequantizeV2", inputs, num_bits=bits, axis=axis, **common)
                self.op("QuantizeAndDequantizeV4", inputs, gradient=True, num_bits=bits, axis=axis, **common)
                self.op("QuantizeAndDequantizeV3", Inputs(inputs).add(np.int32(bits)), range_given=given, axis=axis, **common)
                self.op("QuantizeAndDequantizeV4Grad", Inputs([(values.astype(dtype) + 1, tf.as_dtype(dtype)), *inputs]), axis=axis)
        x, two = np.float32([[1, -2], [3, 4]]), np.float32([0, 1])
        for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
            for bits in (0, 62, 63, -1):
                self.op(op, Inputs().add(x).range((0, 1)), num_bits=bits)
            self.op(op, Inputs().add(x).range((2, 1)), range_given=True)
            self.op(op, Inputs().add(x).range((0, 0)), range_given=True)
            self.op(op, Inputs().add(x).add(two).add(two[:1]), range_given=True, axis=0)
            self.op(op, Inputs().add(x).add(two).add(two), range_given=True, axis=2)
            self.op(op, Inputs().add(x).add(two).add(two), range_given=True, axis=-2)
            self.op(op, Inputs().add(x * 0).range((0, 1)))
            self.op(op, Inputs().add(x[:0]).range((0, 1)))
        self.op("QuantizeAndDequantizeV3", Inputs().add(x).range((0, 1)).add(np.int32(0)))
        self.op("QuantizeAndDequantizeV3", Inputs().add(x).range((0, 1)).add(np.int32([8])))
        self.op("QuantizeAndDequantizeV3", Inputs().add(x).range((1, 0)).add(np.int32(8)))
        self.op("QuantizeAndDequantizeV4Grad", Inputs().add(x[:1]).add(x).range((0, 1)))
        self.op("QuantizeAndDequantizeV4Grad", Inputs().add(x).add(x).add(two).add(two))
        self.op("QuantizeAndDequantizeV4Grad", Inputs().add(x).add(x).range((0, 1)), axis=0)

    def fake(self):
        sums = (1e-5, 1e-5)
        for _ in range(30):
            low, high = self.holding_zero()
            common = {"num_bits": self.random.choice([2, 3, 4, 8, 8, 16]), "narrow_range": self.random.random() < .5}
            values = self.reals(low, high, self.shape())
            self.op("FakeQuantWithMinMaxArgs", Inputs().add(values), gradient=True, min=low, max=high, **common)
            self.op("FakeQuantWithMinMaxVars", Inputs().add(values).range((low, high)), gradient=True, tolerance=sums, **common)
            # Quotients of 16 bits have no float for their fraction, which TensorFlow rounds in another way here.
            common["num_bits"] = min(common["num_bits"], 8)
            shape = self.shape(1)
            lows, highs = (np.float32(v) for v in zip(*(self.holding_zero() for _ in range(shape[-1]))))
            values = self.reals(min(lows), max(highs), shape)
            self.op("FakeQuantWithMinMaxVarsPerChannel", Inputs().add(values).add(lows).add(highs), gradient=True, tolerance=sums, **common)
        x, two = np.float32([[1, -2], [3, 4]]), np.float32([0, 1])
        for attrs in ({"num_bits": 1}, {"num_bits": 17}, {"min": 1.0, "max": 1.0}, {"min": 2.0, "max": 1.0}, {"min": 1.0, "max": 2.0}):
            self.op("FakeQuantWithMinMaxArgs", Inputs().add(x), **attrs)
            self.op("FakeQuantWithMinMaxArgsGradient", Inputs().add(x).add(x), **attrs)
        self.op("FakeQuantWithMinMaxArgsGradient", Inputs().add(x).add(x[:1]))
        self.op("FakeQuantWithMinMaxVars", Inputs().add(x).range((0, 0)), gradient=True)
        self.op("FakeQuantWithMinMaxVars", Inputs().add(x).add(two).add(two))
        self.op("FakeQuantWithMinMaxVars", Inputs().add(x).range((0, 1)), num_bits=1)
        self.op("FakeQuantWithMinMaxVarsGradient", Inputs().add(x[:1]).add(x).range((0, 1)))
        self.op("FakeQuantWithMinMaxVarsPerChannel", Inputs().add(x).add(two * 0).add(two), gradient=True)
        self.op("FakeQuantWithMinMaxVarsPerChannel", Inputs().add(x).add(two[:1]).add(two))
        self.op("FakeQuantWithMinMaxVarsPerChannel", Inputs().add(x).range((0, 1)))
        self.op("FakeQuantWithMinMaxVarsPerChannelGradient", Inputs().add(x).add(x).add(two).add(two[:1]))
        self.op("FakeQuantWithMinMaxVarsPerChannelGradient", Inputs().add(x).add(x[:1]).add(two).add(two))

    def images(self):
        t, two = tf.quint8, np.float32([0, 1])
        for i in range(20):
            shape = tuple(self.random.choice([1, 2, 3, 5, 8]) for _ in range(4))
            given = {"output_range_given": True, "given_y_min": -2.0, "given_y_max": 1.5} if i % 3 == 0 else {}
            self.op("QuantizedInstanceNorm", Inputs().add(self.integers(t, shape), t).range(self.range()), tolerance=(1e-5, 1), **given)
            for dtype in (t, tf.qint32, tf.float32):
                values = self.numbers.normal(size=shape).astype(np.float32) if dtype == tf.float32 else self.integers(dtype, shape)
                if dtype == tf.qint32:  # The largest becomes a float, and that an int, of which it is too large.
                    values = np.minimum(values, np.int32(2**31 - 129))
                size = np.int32(shape[1:3] if i % 5 == 0 else [self.random.randint(1, 9) for _ in range(2)])
                centers = self.random.choice([{}, {"align_corners": True}, {"half_pixel_centers": True}])
                self.op("QuantizedResizeBilinear", Inputs().add(values, dtype).add(size).range(self.range()), **centers,
                        tolerance=(1e-5, 1e-6) if dtype == tf.float32 else (0, 0))
            if shape[3] == 1:  # Of which TensorFlow's kernel refuses the vectors.
                shape = (*shape[:3], 2)
            inputs = Inputs().add(self.integers(t, shape), t).range(self.range())
            for low, high in (self.range(), (0.0, self.random.uniform(.1, 9)), self.range(), self.range()):
                inputs.add(self.integers(t, shape[3:]), t).range((low, high))
            self.op("QuantizedBatchNormWithGlobalNormalization", inputs, out_type=tf.qint32, variance_epsilon=1e-3,
                    scale_after_normalization=self.random.random() < .5)
            channels = [self.holding_zero() for _ in range(shape[3])]
            lows, highs = (np.float32(values) for values in zip(*channels))
            sums = Inputs().add(self.sums(shape), tf.qint32).add(lows).add(highs)
            for target in (tf.quint8, tf.qint8):
                low, high = self.random.choice([(-6.0, 6.0), (-1e-3, 1e-3), (-1.0, 30.0)])
                self.op("RequantizePerChannel", Inputs(sums).range((low, high)), out_type=target)
            positive = Inputs(sums)
            if i % 2:
                positive[0] = (np.abs(positive[0][0]), tf.qint32)
            self.op("RequantizationRangePerChannel", positive, clip_value_max=self.random.choice([6.0, 1e-4, 1e9]))
        q, fine = self.integers(t, (1, 2, 3, 2)), (0.0, 1.0)
        self.op("QuantizedInstanceNorm", Inputs().add(q, t).range((1, 1)))
        self.op("QuantizedInstanceNorm", Inputs().add(q, t).add(two).add(two))
        self.op("QuantizedInstanceNorm", Inputs().add(q, t).range(fine), output_range_given=True, given_y_min=1.0, given_y_max=1.0)
        self.op("QuantizedInstanceNorm", Inputs().add(q * 0 + 7, t).range(fine), min_separation=.5)
        for size in ([0, 1], [1, -1], [1], [1, 2, 3]):
            self.op("QuantizedResizeBilinear", Inputs().add(q, t).add(np.int32(size)).range(fine))
        self.op("QuantizedResizeBilinear", Inputs().add(q, t).add(np.int32([3, 2])).range(fine), align_corners=True,
                half_pixel_centers=True)
        self.op("QuantizedResizeBilinear", Inputs().add(q, t).add(np.int32([3, 2])).add(two).add(two))
        self.op("QuantizedResizeBilinear", Inputs().add(q[:, :0], t).add(np.int32([3, 2])).range(fine))
        sums = Inputs().add(self.sums((1, 2, 2, 2)), tf.qint32).add(two).add(two + 1)
        for low, high in ((0.0, 1.0), (1.0, 2.0)):
            self.op("RequantizePerChannel", Inputs(sums).range((low, high)), out_type=tf.qint8)
        self.op("RequantizePerChannel", Inputs(sums).add(two).add(two), out_type=tf.quint8)
        self.op("RequantizationRangePerChannel", Inputs(sums[:2]).add(two[:1]), clip_value_max=6.0)
        self.op("RequantizationRangePerChannel", Inputs([(sums[0][0][0], tf.qint32), *sums[1:]]), clip_value_max=6.0)
        self.op("RequantizationRangePerChannel", Inputs([(sums[0][0][:0], tf.qint32), *sums[1:]]), clip_value_max=6.0)

    def first_version(self):
        self.producer = 21
        for _ in range(20):
            low, high = self.range()
            for dtype in (np.float32, np.float64):
                self.op("QuantizeAndDequantize", Inputs().add(self.reals(low, high, self.shape(1)).astype(dtype)), gradient=True,
                        signed_input=self.random.random() < .5, num_bits=self.random.choice([1, 2, 4, 8, 8, 16, 31]),
                        range_given=self.random.random() < .6, input_min=low, input_max=high)
        x = np.float32([[1, -2], [3, 4]])
        for bits in (0, 62, 63, -1):
            self.op("QuantizeAndDequantize", Inputs().add(x), num_bits=bits)
        self.op("QuantizeAndDequantize", Inputs().add(x), range_given=True, input_min=2.0, input_max=1.0)
        self.producer = tf.version.GRAPH_DEF_VERSION
        self.op("QuantizeAndDequantize", Inputs().add(x))

    def uniform(self):
        limits = {tf.qint8: (-128, 127), tf.quint8: (0, 255), tf.qint32: (-(1 << 31), (1 << 31) - 1)}

        def parameters(shape, axis):
            count = () if axis < 0 else shape[axis]
            return (np.float32(self.numbers.uniform(.01, 2, size=count)), np.int32(self.numbers.integers(-20, 20, size=count)))

        def values(dtype, shape):
            return self.sums(shape) if dtype == tf.qint32 else self.integers(dtype, shape)

        for _ in range(12):
            shape = self.shape(1)
            axis = self.random.choice([-1, self.random.randrange(len(shape))])
            scales, zeros = parameters(shape, axis)
            for dtype, (low, high) in limits.items():
                common = {"quantization_axis": axis, "quantization_min_val": low, "quantization_max_val": high}
                if self.random.random() < .3:
                    common.update(quantization_min_val=3, quantization_max_val=17)
                reals = self.reals(-100, 100, shape)
                self.op("UniformQuantize", Inputs().add(reals).add(scales).add(zeros), Tout=dtype, **common)
                self.op("UniformDequantize", Inputs().add(values(dtype, shape), dtype).add(scales).add(zeros), Tout=tf.float32, **common)
            for dtype in (tf.qint8, tf.qint32):
                axes = self.random.choice([(axis, axis), (-1, axis), (axis, -1)])
                inputs = Inputs().add(values(dtype, shape), dtype)
                for a in axes:
                    for value in parameters(shape, a):
                        inputs.add(value)
                if self.random.random() < .3:
                    inputs[1] = (inputs[1][0] * np.float32(self.random.choice([1e-12, 1e12])), tf.float32)
                low, high = self.random.choice([(-128, 127), (-128, 127), (-5, 100)])
                self.op("UniformRequantize", inputs, Tout=tf.qint8, input_quantization_axis=axes[0], output_quantization_axis=axes[1],
                        output_quantization_min_val=low, output_quantization_max_val=high, input_quantization_min_val=limits[dtype][0],
                        input_quantization_max_val=limits[dtype][1])
            low = self.sums(scales.shape)
            self.op("UniformQuantizedClipByValue", Inputs().add(self.sums(shape), tf.qint32).add(low, tf.qint32)
                    .add(np.int32(low + abs(self.sums(scales.shape)) // 2), tf.qint32).add(scales).add(zeros), quantization_axis=axis,
                    quantization_min_val=-5, quantization_max_val=5)
        x, q = np.float32([[1, -2], [3e9, 4]]), np.int8([[1, -2], [3, 4]])
        two, zeros, byte = np.float32([1, 2]), np.int32([0, 1]), {"quantization_min_val": -128, "quantization_max_val": 127}
        one, zero = np.float32(1), np.int32(0)
        self.op("UniformQuantize", Inputs().add(x).add(one).add(zero), Tout=tf.qint8, **byte)
        for scales, points, axis in ((two, zeros, -1), (two, zero, 0), (one, zero, 0), (two, zeros, 2), (two[:1], zeros[:1], 1), (one, zero, -2)):
            self.op("UniformQuantize", Inputs().add(x).add(scales).add(points), Tout=tf.qint8, quantization_axis=axis, **byte)
            self.op("UniformDequantize", Inputs().add(q, tf.qint8).add(scales).add(points), Tout=tf.float32, quantization_axis=axis, **byte)
            self.op("UniformQuantizedClipByValue", Inputs().add(np.int32(q), tf.qint32).add(np.int32(scales), tf.qint32)
                    .add(np.int32(scales), tf.qint32).add(scales).add(points), quantization_axis=axis, **byte)
        limits = {"input_quantization_min_val": -128, "input_quantization_max_val": 127, "output_quantization_min_val": -128,
                  "output_quantization_max_val": 127}
        for first, second in ((two, one), (one, two), (-one, one), (one, 0 * one), (one * np.float32("inf"), one)):
            self.op("UniformRequantize", Inputs().add(q, tf.qint8).add(first).add(np.zeros_like(first, np.int32)).add(second)
                    .add(np.zeros_like(second, np.int32)), Tout=tf.qint8, **limits)
        self.op("UniformRequantize", Inputs().add(q, tf.qint8).add(two).add(zeros).add(two).add(zeros), Tout=tf.qint8,
                input_quantization_axis=0, output_quantization_axis=1, **limits)

    def movement(self):
        """Ops that move elements, or compare them, on every quantized type for which TensorFlow has them."""
        raw = tf.raw_ops
        moves = {
            "Bitcast": lambda x, t: raw.Bitcast(input=x, type=tf.as_dtype(INTEGERS[t])),
            "Concat": lambda x, t: raw.Concat(concat_dim=1, values=[x, x]),
            "ConcatV2": lambda x, t: raw.ConcatV2(values=[x, x], axis=0),
            "Equal": lambda x, t: raw.Equal(x=x, y=raw.Gather(params=x, indices=[1, 1])),
            "ExpandDims": lambda x, t: raw.ExpandDims(input=x, axis=1),
            "Fill": lambda x, t: raw.Fill(dims=[2, 3], value=x[0, 1]),
            "Gather": lambda x, t: raw.Gather(params=x, indices=[1, 0, 1]),
            "GatherNd": lambda x, t: raw.GatherNd(params=x, indices=[[0, 1], [1, 2]]),
            "GatherV2": lambda x, t: raw.GatherV2(params=x, indices=[2, 0], axis=1),
            "Identity": lambda x, t: raw.Identity(input=x),
            "NotEqual": lambda x, t: raw.NotEqual(x=x, y=raw.Gather(params=x, indices=[1])),
            "Pack": lambda x, t: raw.Pack(values=[x, x], axis=1),
            "Reshape": lambda x, t: raw.Reshape(tensor=x, shape=[3, -1]),
            "ShapeN": lambda x, t: raw.ShapeN(input=[x, x])[1],
            "Squeeze": lambda x, t: raw.Squeeze(input=tf.expand_dims(x, 0)),
            "Tile": lambda x, t: raw.Tile(input=x, multiples=[2, 1]),
            "Transpose": lambda x, t: raw.Transpose(x=x, perm=[1, 0]),
            "Unpack": lambda x, t: raw.Unpack(value=x, num=2)[1],
            "DynamicStitch": lambda x, t: raw.DynamicStitch(indices=[[2, 0]], data=[x]),
            "MirrorPad": lambda x, t: raw.MirrorPad(input=x, paddings=[[1, 0], [1, 2]], mode="REFLECT"),
            "Pad": lambda x, t: raw.Pad(input=x, paddings=[[1, 0], [0, 2]]),
            "PadV2": lambda x, t: raw.PadV2(input=x, paddings=[[1, 0], [0, 2]], constant_values=x[0, 0]),
            "ParallelDynamicStitch": lambda x, t: raw.ParallelDynamicStitch(indices=[[2, 0]], data=[x]),
            "Slice": lambda x, t: raw.Slice(input=x, begin=[0, 1], size=[2, 2]),
            "SparseToDense": lambda x, t: raw.SparseToDense(sparse_indices=[0, 2, 3], output_shape=[5], sparse_values=x[0],
                                                            default_value=x[1, 2]),
            "Split": lambda x, t: raw.Split(axis=0, value=x, num_split=2)[1],
            "StridedSlice": lambda x, t: raw.StridedSlice(input=x, begin=[0, 2], end=[2, 0], strides=[1, -1]),
            "Switch": lambda x, t: raw.Merge(inputs=raw.Switch(data=x, pred=True)).output,
            "TensorArrayGatherV3": self.array,
            "TensorListStack": self.tensor_list,
            "Variable": self.variable,
        }
        for name, move in moves.items():
            for dtype in QUANTIZED:
                def build():
                    x = v1.placeholder(dtype, [2, 3])
                    return [(x, self.integers(dtype, (2, 3)))], [move(x, dtype)]
                self.graph(name, build)
        for dtype in QUANTIZED:  # Constants, of one element and of several
            for shape in ((), (1,), (2, 2)):
                self.graph("Const", lambda: ([], [tf.constant(self.integers(dtype, shape), dtype) if not shape else
                                                  self.constant(dtype, shape)]))

    @staticmethod
    def array(x, dtype):
        array = tf.raw_ops.TensorArrayV3(size=2, dtype=dtype)
        flow = tf.raw_ops.TensorArrayScatterV3(handle=array.handle, indices=[1, 0], value=x, flow_in=array.flow)
        return tf.raw_ops.TensorArrayGatherV3(handle=array.handle, indices=[0, 1], flow_in=flow, dtype=dtype)

    @staticmethod
    def tensor_list(x, dtype):
        handle = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[3])
        return tf.raw_ops.TensorListStack(input_handle=handle, element_shape=[3], element_dtype=dtype, num_elements=2)

    @staticmethod
    def variable(x, dtype):
        handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=[2, 3])
        with tf.control_dependencies([tf.raw_ops.AssignVariableOp(resource=handle, value=x)]):
            return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)

    def constant(self, dtype, shape):
        node = v1.NodeDef(name="constant", op="Const")
        node.attr["dtype"].type = dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(self.integers(dtype, shape), dtype))
        graph = v1.GraphDef(node=[node])
        return tf.import_graph_def(graph, return_elements=["constant:0"], name="")[0]

    def casts(self):
        """As the integers that quantized numbers are stored as."""
        self.known = True
        plain = [tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32,
                 tf.uint64, tf.bool, tf.complex64, tf.complex128, *(tf.as_dtype(n) for n in ("float8_e5m2", "float8_e4m3fn", "int4", "uint4"))]
        for quantized, integer in INTEGERS.items():
            ends = np.iinfo(integer)
            stored = np.array([ends.min, ends.min + 1, 0, 1, 7, 100, ends.max], integer)
            for other in plain + QUANTIZED:
                if other != quantized:
                    self.op("Cast", Inputs().add(stored, quantized), DstT=other)
                if other in plain:
                    self.op("Cast", Inputs().add(np.array([0, 1, 7, 100]).astype(other.as_numpy_dtype), other), DstT=quantized)

    def draw(self):
        for known in (True, False):
            self.known = known
            for part in (self.quantize, self.dequantize, self.requantize, self.products, self.arithmetic, self.shaped, self.simulated,
                         self.fake):
                part()
        self.movement()
        for known in (True, False):
            self.known = known
            for part in (self.images, self.first_version, self.uniform):
                part()
        self.casts()
        return self.cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op-defs", action="store_true")
    parser.add_argument("out")
    options = parser.parse_args()
    if options.op_defs:
        with open(options.out, "w") as file:
            file.write(op_defs())
        return
    recorder, recorded = Recorder(), []
    for case in Cases(options.seed).draw():
        done = recorder(case)
        if done is None:
            print(f"{case.name}: TensorFlow dies, or the client refuses")
        elif not op_def_registry.get(case.op) or case.op not in OPS and any(step.error for step in done.step):
            print(f"{case.name}: TensorFlow has no kernel")
        else:
            recorded.append(done)
    write(options.out, recorded)


if __name__ == "__main__":
    sys.exit(main())
