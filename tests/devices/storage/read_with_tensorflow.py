"""read_with_tensorflow.py FOLDER: TensorFlow reads the files that interchange_realtime_test.cc has written. What the
checkpoints hold is in FOLDER/expected.tfrecord, a NamedTensorProto CHECKPOINT:NAME for each tensor. Prints "N files
agree", or what differs.
"""

import collections
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import named_tensor_pb2
from tensorflow.python.checkpoint import checkpoint_management

folder = sys.argv[1]
files = 0


def in_folder(name):
    return os.path.join(folder, name)


def plain(a):
    """Quantized elements, which NumPy has as structures of one integer, as integers."""
    return a.view(a.dtype[0]) if a.dtype.names else a


def same(a, b):
    a, b = plain(a), plain(b)
    return a.dtype == b.dtype and a.shape == b.shape and (
        a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())


def check(fact, *what):
    if not fact:
        sys.exit(" ".join(str(w) for w in what))


expected = collections.defaultdict(dict)
for record in tf.data.TFRecordDataset(in_folder("expected.tfrecord")):
    named = named_tensor_pb2.NamedTensorProto.FromString(record.numpy())
    prefix, name = named.name.split(":")
    expected[prefix][name] = tf.make_ndarray(named.tensor)

for prefix, tensors in expected.items():
    reader = tf.train.load_checkpoint(in_folder(prefix))
    check(set(reader.get_variable_to_shape_map()) == set(tensors), prefix, reader.get_variable_to_shape_map())
    for name, want in tensors.items():
        dtype = reader.get_variable_to_dtype_map()[name]
        if dtype.as_numpy_dtype is object:  # the Python wrapper takes strings for text
            got = tf.raw_ops.RestoreV2(prefix=in_folder(prefix), tensor_names=[name], shape_and_slices=[""],
                                       dtypes=[dtype])[0].numpy()
        else:
            got = reader.get_tensor(name)
        got = np.asarray(got, dtype=want.dtype) if want.dtype == object else np.asarray(got)
        check(same(got, want), prefix, name, got, want)
    files += 1

rows = tf.raw_ops.RestoreV2(prefix=in_folder("merged"), tensor_names=["rows"], shape_and_slices=["10 4 3,5:-"],
                            dtypes=[tf.float32])[0]
check(same(rows.numpy(), expected["merged"]["rows"][3:8]), "a slice of slices", rows)

want = [b"", b"one", b"x" * 100000, b"\0\xff"]
for name in ["", "ZLIB", "GZIP"]:
    records = [r.numpy() for r in tf.data.TFRecordDataset(in_folder("records" + name), compression_type=name)]
    check(records == want, "records", name, records)
    files += 1

events = list(tf.compat.v1.train.summary_iterator(in_folder("events.out.tfevents.1700000000.host")))
check([e.file_version for e in events] == ["brain.Event:2", ""], events)
check(events[0].wall_time == 1700000000.5 and events[1].step == 3, events)
check(events[1].summary.value[0].tag == "loss" and events[1].summary.value[0].simple_value == 0.25, events)
files += 1

state = checkpoint_management.get_checkpoint_state(folder)
check(state.model_checkpoint_path == in_folder("merged"), state)
check(list(state.all_model_checkpoint_paths) == [in_folder("plain"), in_folder("merged")], state)
check(list(state.all_model_checkpoint_timestamps) == [1700000000.25, 1700000001.5], state)
check(checkpoint_management.latest_checkpoint(folder) == in_folder("merged"), "the latest")
files += 1
print(files, "files agree")
