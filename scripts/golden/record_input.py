#!/usr/bin/env python3
"""scripts/golden/record_input.py [FOLDER]

Writes into tests/api/input/testdata: examples.gz, Examples and a SequenceExample as TensorFlow 2.21 makes them, and
graphs.txt, the graphs that TensorFlow 2.21's queue pipelines (tf.compat.v1.train) add: for each scenario a line "= NAME", a line a node,
and what the collections hold. A node's line is its name, its op, its inputs, and those attributes that say what it does.
"""

import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.disable_control_flow_v2()
train = v1.train
ATTRS = ["capacity", "component_types", "limit", "min_after_dequeue", "num_partitions", "seed", "seed2", "shapes", "shared_name"]


def element():
    return [tf.constant([1.0, 2.0], name="x"), tf.constant(3, tf.int64, name="y")]


def rows():
    return [tf.zeros([6, 2], name="images"), tf.zeros([6], tf.int32, name="labels")]


SCENARIOS = {
    "strings": lambda: train.string_input_producer(["a", "b", "c"], num_epochs=2, seed=7, capacity=16, shared_name="files"),
    "strings in order": lambda: train.string_input_producer(["a", "b"], shuffle=False),
    "range": lambda: train.range_input_producer(10, shuffle=False, num_epochs=1, name="numbers"),
    "slices": lambda: train.slice_input_producer(rows(), num_epochs=3, seed=5),
    "rows": lambda: train.input_producer(tf.zeros([6, 2], name="images"), shuffle=False, summary_name="full"),
    "named rows": lambda: train.input_producer(tf.zeros([6], name="images"), seed=1, name="source"),
    "epochs": lambda: train.limit_epochs(tf.constant(1, name="x"), 4),
    "batch": lambda: train.batch(element(), 4, num_threads=3, capacity=20),
    "smaller batch": lambda: train.batch(element(), 4, allow_smaller_final_batch=True, shared_name="q", name="examples"),
    "batch of many": lambda: train.batch(rows(), 4, enqueue_many=True),
    "padded batch": lambda: train.batch([v1.placeholder(tf.string, [None], name="words")], 4, dynamic_pad=True),
    "shapes": lambda: train.batch([v1.placeholder(tf.float32, name="x")], 4, shapes=[[5]]),
    "join": lambda: train.batch_join([[tf.zeros([2], name="a")], [tf.zeros([2], name="b")]], 5, capacity=7),
    "shuffle": lambda: train.shuffle_batch(element(), 4, capacity=50, min_after_dequeue=30, num_threads=2, seed=9),
    "shuffle join": lambda: train.shuffle_batch_join(
        [[tf.zeros([3, 2], name="a")], [tf.zeros([3, 2], name="b")]], 5, capacity=9, min_after_dequeue=2, seed=3,
        enqueue_many=True, allow_smaller_final_batch=True),
    "some": lambda: train.maybe_batch(rows(), v1.placeholder(tf.bool, [6], name="keep"), 2, enqueue_many=True),
    "shared seed": lambda: (v1.set_random_seed(17), train.shuffle_batch(
        element(), 4, capacity=50, min_after_dequeue=30, shared_name="shuffled")),
}


def attr(op, name):
    value = op.get_attr(name)
    if name == "shapes":
        return [[d.size for d in shape.dim] for shape in value]
    if name == "component_types":
        return [t.name for t in value]
    return value.decode() if isinstance(value, bytes) else value


def text(value):
    if isinstance(value, list):
        return "[" + ",".join(text(v) for v in value) + "]"
    return str(value)


def feature(values, kind):
    return tf.train.Feature(**{f"{kind}_list": {"bytes": tf.train.BytesList, "float": tf.train.FloatList,
                                                "int64": tf.train.Int64List}[kind](value=values)})


def write_examples(file):
    with tf.io.TFRecordWriter(file, "GZIP") as writer:
        for i in range(3):
            features = {"number": feature([i, -i], "int64"), "half": feature([0.5 * i], "float"),
                        "text": feature([b"text %d" % i, b"\xff"], "bytes"), "empty": tf.train.Feature()}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        steps = tf.train.FeatureList(feature=[feature([i], "int64") for i in range(3)])
        writer.write(tf.train.SequenceExample(
            context=tf.train.Features(feature={"title": feature([b"of three"], "bytes")}),
            feature_lists=tf.train.FeatureLists(feature_list={"steps": steps})).SerializeToString())


def write_graphs(file):
    for name, build in SCENARIOS.items():
        with tf.Graph().as_default() as graph:
            build()
            print("=", name, file=file)
            for op in graph.get_operations():
                inputs = [t.name.removesuffix(":0") for t in op.inputs] + ["^" + c.name for c in op.control_inputs]
                attrs = [f"{a}={text(attr(op, a))}" for a in ATTRS if a in op.node_def.attr]
                if op.type == "Const" and op.outputs[0].shape.rank == 0 and not op.outputs[0].dtype.is_floating:
                    value = tf.make_ndarray(op.node_def.attr["value"].tensor).item()
                    attrs.append("value=" + (value.decode().replace(" ", "_") if isinstance(value, bytes) else repr(value)))
                print(op.name, op.type, "(" + ",".join(inputs) + ")", *attrs, file=file)
            for runner in graph.get_collection("queue_runners"):
                proto = runner.to_proto()
                print("runner", proto.queue_name, ",".join(proto.enqueue_op_name), proto.close_op_name, proto.cancel_op_name,
                      file=file)
            for summary in graph.get_collection("summaries"):
                print("summary", summary.name, file=file)
            for variable in graph.get_collection("local_variables"):
                print("local", variable.op.name, file=file)


if __name__ == "__main__":
    if not tf.__version__.startswith("2.21"):
        sys.exit(f"The recorded graphs are TensorFlow 2.21's; this is {tf.__version__}.")
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/api/input/testdata"
    os.makedirs(folder, exist_ok=True)
    write_examples(f"{folder}/examples.gz")
    with open(f"{folder}/graphs.txt", "w") as graphs:
        write_graphs(graphs)
