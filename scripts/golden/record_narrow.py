#!/usr/bin/env python3
"""scripts/golden/record_narrow.py OUT.pb.gz

tests/golden/narrow.pb.gz: casts to and from floats of 8 bits and integers of 4, all elements of the narrow types, of half and of
bfloat16; and ops that move them. What TensorFlow 2.21 gives. A case for which it has no kernel is left out, and said.
"""

import argparse
import sys

from recorder import Recorder, bytes_of, golden, np, tf, v1, write
from tensorflow.python.framework import dtypes

FLOATS = [dtypes.float8_e5m2, dtypes.float8_e4m3fn]
INTEGERS = [dtypes.int4, dtypes.uint4]
NARROW = FLOATS + INTEGERS
OTHERS = [tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32,
          tf.uint64, tf.bool, tf.complex64, tf.complex128]


def every(dtype):
    """Every element of a type of 8 or 16 bits."""
    if dtype == dtypes.int4:
        return np.arange(-8, 8).astype(dtype.as_numpy_dtype)
    if dtype == dtypes.uint4:
        return np.arange(16).astype(dtype.as_numpy_dtype)
    if dtype.size == 1:
        return np.arange(256, dtype=np.uint8).view(dtype.as_numpy_dtype)
    return np.arange(65536, dtype=np.uint16).view(dtype.as_numpy_dtype)


def reals(target, dtype):
    """Numbers of `target`, just between two of them, beside that, too large, and none."""
    finite = every(target).astype(np.float64)
    finite = np.unique(finite[np.isfinite(finite)])
    middle = (finite[1:] + finite[:-1]) / 2
    limits = np.outer([1, -1], [448, 464, 465, 480, 57344, 61440, 61441, 65536, 1e30, 1e-30, 1e300]).reshape(-1)
    values = np.concatenate([finite, middle, limits, [0.0, -0.0, np.nan, np.inf, -np.inf]])
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    return np.concatenate([values, np.nextafter(values, dtype(0)), np.nextafter(values, dtype(np.inf))])


def elements(source, target):
    if source in FLOATS and target in (tf.uint32, tf.uint64):  # What others become there is not defined.
        return every(source)[np.isfinite(every(source).astype(np.float32))]
    if source in NARROW or source in (tf.float16, tf.bfloat16):
        return every(source)
    if source in (tf.float32, tf.float64):
        return reals(target, source.as_numpy_dtype)
    if source.is_integer:
        limits = np.iinfo(source.as_numpy_dtype)
        return np.unique(np.clip(np.arange(-300, 301), limits.min, limits.max)).astype(source.as_numpy_dtype)
    return np.array([0, 1, 1, 0]).astype(source.as_numpy_dtype)


MOVES = {
    "BroadcastTo": lambda x: tf.raw_ops.BroadcastTo(input=x, shape=[2, 2, 3]),
    "Concat": lambda x: tf.raw_ops.Concat(concat_dim=1, values=[x, x]),
    "ConcatV2": lambda x: tf.raw_ops.ConcatV2(values=[x, x], axis=0),
    "ConjugateTranspose": lambda x: tf.raw_ops.ConjugateTranspose(x=x, perm=[1, 0]),
    "ExpandDims": lambda x: tf.raw_ops.ExpandDims(input=x, axis=1),
    "Fill": lambda x: tf.raw_ops.Fill(dims=[2, 3], value=tf.reshape(tf.raw_ops.Split(axis=0, value=tf.reshape(x, [6]), num_split=6)[1], [])),
    "Gather": lambda x: tf.raw_ops.Gather(params=x, indices=[1, 0, 1]),
    "GatherNd": lambda x: tf.raw_ops.GatherNd(params=x, indices=[[0, 1], [1, 2]]),
    "GatherV2": lambda x: tf.raw_ops.GatherV2(params=x, indices=[2, 0], axis=1),
    "Identity": lambda x: tf.raw_ops.Identity(input=x),
    "Pack": lambda x: tf.raw_ops.Pack(values=[x, x], axis=1),
    "Reshape": lambda x: tf.raw_ops.Reshape(tensor=x, shape=[3, -1]),
    "Slice": lambda x: tf.raw_ops.Slice(input=x, begin=[0, 1], size=[2, 2]),
    "Split": lambda x: tf.raw_ops.Split(axis=0, value=x, num_split=2)[1],
    "SplitV": lambda x: tf.raw_ops.SplitV(value=x, size_splits=[1, 2], axis=1, num_split=2)[1],
    "Squeeze": lambda x: tf.raw_ops.Squeeze(input=tf.raw_ops.ExpandDims(input=x, axis=0)),
    "StridedSlice": lambda x: tf.raw_ops.StridedSlice(input=x, begin=[0, 2], end=[2, 0], strides=[1, -1]),
    "Transpose": lambda x: tf.raw_ops.Transpose(x=x, perm=[1, 0]),
    "Unpack": lambda x: tf.raw_ops.Unpack(value=x, num=2)[1],
}


def variable(x):
    handle = tf.raw_ops.VarHandleOp(dtype=x.dtype, shape=x.shape)
    with tf.control_dependencies([tf.raw_ops.AssignVariableOp(resource=handle, value=x)]):
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=x.dtype)


def case(name, op, build, feeds=()):
    """A case of a graph that `build` makes; it gives what is fetched."""
    graph = tf.Graph()
    with graph.as_default():
        placeholders = [v1.placeholder(dtype, values.shape) for values, dtype in feeds]
        result = build(*placeholders)
    recorded = golden.Case(name=name, op=op, tag=["narrow"], graph=graph.as_graph_def().SerializeToString(deterministic=True))
    step = recorded.step.add(fetch=[result.name])
    for placeholder, (values, dtype) in zip(placeholders, feeds):
        step.feed.add(name=placeholder.name, tensor=bytes_of(values, dtype))
    return recorded


def constant(values, dtype):
    node = v1.NodeDef(name="x", op="Const")
    node.attr["dtype"].type = dtype.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values, dtype))
    return tf.import_graph_def(v1.GraphDef(node=[node]), return_elements=["x:0"], name="")[0]


def cases():
    for narrow in NARROW:
        for other in OTHERS + NARROW:
            for source, target in {(narrow, other), (other, narrow)}:
                yield case(f"Cast/{source.name}/{target.name}", "Cast", lambda x: tf.raw_ops.Cast(x=x, DstT=target),
                           [(elements(source, target), source)])
                if target in FLOATS and source in FLOATS + [tf.float32, tf.float64, tf.float16, tf.bfloat16]:
                    yield case(f"Cast/{source.name}/{target.name}/truncate", "Cast",
                               lambda x: tf.raw_ops.Cast(x=x, DstT=target, Truncate=True), [(elements(source, target), source)])
        six = every(narrow)[1:13:2].reshape(2, 3)
        for name, move in {**MOVES, "AssignVariableOp": variable}.items():
            yield case(f"{name}/{narrow.name}", name, move, [(six, narrow)])
        for name, values in {"one": six[0, 1], "several": six, "repeated": np.full(5, six[1, 1])}.items():
            yield case(f"Const/{narrow.name}/{name}", "Const", lambda: constant(values, narrow))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out")
    options = parser.parse_args()
    recorder, recorded = Recorder(), []
    for one in sorted(cases(), key=lambda c: c.name):
        done = recorder(one)
        if done is None or any(step.error for step in done.step):
            print(f"{one.name}: TensorFlow has no kernel")
        else:
            recorded.append(done)
    write(options.out, recorded)


if __name__ == "__main__":
    sys.exit(main())
