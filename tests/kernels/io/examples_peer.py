"""TensorFlow's side of interchange_realtime_test.cc: examples_peer.py FOLDER.

Writes Examples to theirs.NONE, theirs.ZLIB and theirs.GZIP. Reads these and ours.* by TensorFlow's readers and
puts what it parses into *.parsed: record files with a serialized tensor for each output.
"""

import os
import random
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

COUNT = 200


def feature(kind, values):
    lists = {"i": ("int64_list", tf.train.Int64List), "f": ("float_list", tf.train.FloatList),
             "s": ("bytes_list", tf.train.BytesList)}
    name, make = lists[kind]
    return tf.train.Feature(**{name: make(value=values)})


def example(rng):
    features = {"fixed": feature("f", [rng.random() for _ in range(3)]),
                "sparse": feature("i", [rng.randrange(-2**63, 2**63) for _ in range(rng.randrange(4))]),
                "ragged": feature("s", [rng.randbytes(rng.randrange(5)) for _ in range(rng.randrange(4))])}
    if rng.random() < 0.5:
        features["default"] = feature("i", [rng.randrange(100)])
    if rng.random() < 0.8:
        features["padded"] = feature("f", [rng.random() for _ in range(2 * rng.randrange(3))])
    if rng.random() < 0.3:
        features["other"] = tf.train.Feature()
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def parse(file, compression):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.string])
        session.run(tf.raw_ops.QueueEnqueueV2(handle=queue, components=[file]))
        reader = tf.raw_ops.TFRecordReaderV2(compression_type="" if compression == "NONE" else compression)
        keys, values = tf.raw_ops.ReaderReadUpToV2(reader_handle=reader, queue_handle=queue, num_records=COUNT)
        parsed = tf.raw_ops.ParseExampleV2(
            serialized=values, names=[], sparse_keys=["sparse"], dense_keys=["fixed", "default", "padded"],
            ragged_keys=["ragged"], dense_defaults=[tf.constant([], tf.float32), tf.constant(-1, tf.int64),
                                                    tf.constant(0.5)],
            num_sparse=1, sparse_types=[tf.int64], ragged_value_types=[tf.string], ragged_split_types=[tf.int32],
            dense_shapes=[[3], [], [None, 2]])
        tensors = [keys] + [tensor for group in parsed for tensor in group]
        results = session.run([tf.io.serialize_tensor(tensor) for tensor in tensors])
    with tf.io.TFRecordWriter(file + ".parsed") as writer:
        for result in results:
            writer.write(result)


def main():
    folder = sys.argv[1]
    for compression in ("NONE", "ZLIB", "GZIP"):
        rng = random.Random(compression)
        options = tf.io.TFRecordOptions("" if compression == "NONE" else compression)
        with tf.io.TFRecordWriter(f"{folder}/theirs.{compression}", options) as writer:
            for _ in range(COUNT):
                writer.write(example(rng))
        for whose in ("ours", "theirs"):
            parse(f"{folder}/{whose}.{compression}", compression)
    print("done")


main()
