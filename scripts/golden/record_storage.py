#!/usr/bin/env python3
"""scripts/golden/record_storage.py [FOLDER]

Checkpoints, record files, an event file and a list of checkpoints as TensorFlow 2.21 writes them, into
tests/devices/storage/testdata. What the checkpoints hold is in expected.tfrecord, one NamedTensorProto a tensor.
"""

import glob
import os
import shutil
import sys

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import named_tensor_pb2
from tensorflow.python.checkpoint import checkpoint_management

VERSION = "2.21"
if not tf.__version__.startswith(VERSION):
    sys.exit(f"The recorded files are TensorFlow {VERSION}'s; this is {tf.__version__}.")
v1, raw = tf.compat.v1, tf.raw_ops
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/devices/storage/testdata")
TYPES = [tf.float32, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64,
         tf.bool, tf.half, tf.bfloat16, tf.complex64, tf.complex128]
# The last version of TensorFlow that wrote V1 had these.
V1_TYPES = [tf.float32, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.bool, tf.half, tf.complex64]
STRINGS = [b"", b"\0", b"one", b"\xff\xfe", b"x" * 200, b"last"]


def values(dtype, count):
    """As many different ones as the type has, the ends of its range among them."""
    if dtype == tf.bool:
        return np.arange(count) % 3 == 0
    if dtype.is_integer:
        return np.array([dtype.min, dtype.max] + [i * 7 % 100 for i in range(count - 2)], dtype.as_numpy_dtype)
    real = np.array([0.0, -0.0, np.inf, np.nan] + [i * 0.37 - 1 for i in range(count - 4)])
    if dtype.is_complex:
        real = real[::-1] + np.where(np.isfinite(real), real, 1.0) * 1j
    return real.astype(dtype.as_numpy_dtype)


def tensors(types):
    named = {f"{t.name}/matrix": tf.constant(values(t, 12).reshape(3, 4)) for t in types}
    named.update({f"{t.name}/scalar": tf.constant(values(t, 6)[5]) for t in types})
    named["empty"] = tf.zeros([0, 3])
    named["strings"] = tf.constant(np.array(STRINGS, object).reshape(2, 3))
    return named


def save_v2(prefix, named, slices=None):
    raw.SaveV2(prefix=prefix, tensor_names=list(named), tensors=list(named.values()),
               shape_and_slices=slices or [""] * len(named))


def record_v2(expected):
    everything = tensors(TYPES)
    save_v2("v2", everything)
    expected.update({f"v2:{name}": tensor for name, tensor in everything.items()})

    rows = tf.reshape(tf.range(40, dtype=tf.float32), [10, 4])
    texts = tf.constant([f"text {i}" for i in range(5)])
    for part, (begin, size) in enumerate([(0, 4), (4, 3), (7, 3)]):
        save_v2(f"part-{part}", {"rows": rows[begin:begin + size], f"own/{part}": tf.constant([part, -part])},
                [f"10 4 {begin},{size}:-", ""])
    save_v2("part-3", {"columns": rows[:, 1:], "texts": texts[2:]}, ["10 4 -:1,3", "5 2,3"])
    save_v2("part-4", {"columns": rows[:, :1], "texts": texts[:2]}, ["10 4 -:0,1", "5 0,2"])
    raw.MergeV2Checkpoints(checkpoint_prefixes=[f"part-{i}" for i in range(5)], destination_prefix="sharded",
                           delete_old_dirs=False)
    expected.update({"sharded:rows": rows, "sharded:columns": rows, "sharded:texts": texts})
    expected.update({f"sharded:own/{part}": tf.constant([part, -part]) for part in range(3)})
    # A type of which V1 checkpoints have none.
    save_v2("foreign", {"float8": tf.cast([1.0, 2.0], tf.dtypes.experimental.float8_e5m2), "float": tf.constant(1.5)})
    expected["foreign:float"] = tf.constant(1.5)


def record_v1(expected):
    everything = tensors(V1_TYPES)
    del everything["empty"]  # TensorFlow's V1 writer does not know how
    raw.Save(filename="v1", tensor_names=list(everything), data=list(everything.values()))
    expected.update({f"v1:{name}": tensor for name, tensor in everything.items()})

    rows = tf.reshape(tf.range(300, 340, dtype=tf.int64), [10, 4])
    for part, (begin, size) in enumerate([(0, 6), (6, 4)]):
        raw.SaveSlices(filename=f"v1-{part:05d}-of-00002", tensor_names=["rows", f"own/{part}"],
                       shapes_and_slices=[f"10 4 {begin},{size}:-", ""],
                       data=[rows[begin:begin + size], tf.constant([part + 0.5])])
    expected.update({"v1-*-of-00002:rows": rows, "v1-*-of-00002:own/0": tf.constant([0.5]),
                     "v1-*-of-00002:own/1": tf.constant([1.5])})


def record_files(expected):
    records = [b"", b"a record", bytes(range(256)), b"z" * 2000]
    for compression in ["", "ZLIB", "GZIP"]:
        with tf.io.TFRecordWriter(f"records{compression.lower() and '.' + compression.lower()}", compression) as file:
            for record in records:
                file.write(record)
    with tf.io.TFRecordWriter("expected.tfrecord") as file:
        for name, tensor in expected.items():
            proto = tf.make_tensor_proto(tensor.numpy(), tensor.dtype)
            file.write(named_tensor_pb2.NamedTensorProto(name=name, tensor=proto).SerializeToString())


def record_events():
    with tf.Graph().as_default():
        writer = v1.summary.FileWriter("events")
        for step in range(2):
            summary = v1.Summary(value=[v1.Summary.Value(tag="loss", simple_value=0.5 / (step + 1))])
            writer.add_summary(summary, step)
        writer.add_session_log(v1.SessionLog(status=v1.SessionLog.STOP), 2)
        writer.close()
    (file,) = glob.glob("events/*")
    os.rename(file, "events.out.tfevents.1700000000.host")  # without this machine's name
    os.rmdir("events")


def record_state():
    checkpoint_management.update_checkpoint_state_internal(
        ".", "model-20", ["../other/model-5", "model-10", "model-20"], save_relative_paths=True,
        all_model_checkpoint_timestamps=[1700000000.25, 1700000100.5, 1700000200.75],
        last_preserved_timestamp=1699999999.0)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    os.chdir(FOLDER)
    expected = {}
    record_v2(expected)
    record_v1(expected)
    record_files(expected)
    record_events()
    record_state()


main()
