#!/usr/bin/env python3
"""scripts/golden/record_saved_models.py [FOLDER]

MetaGraphs and SavedModels as TensorFlow 2.21 writes them, into tests/api/saved_model/testdata. What their signatures
give is in expected.json: MODEL -> SIGNATURE -> {"inputs": {name: values}, "outputs": {name: values}}.
"""

import json
import os
import shutil
import sys

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf

VERSION = "2.21"
if not tf.__version__.startswith(VERSION):
    sys.exit(f"The recorded files are TensorFlow {VERSION}'s; this is {tf.__version__}.")
v1 = tf.compat.v1
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/api/saved_model/testdata")
INPUT = [[0.5, -1.0, 2.0], [1.0, 0.25, -0.75]]
expected = {}


def note(model, signature, inputs, outputs):
    def plain(values):
        return {k: np.asarray(v).tolist() for k, v in sorted(values.items())}

    expected.setdefault(model, {})[signature] = {"inputs": plain(inputs), "outputs": plain(outputs)}


def record_training(name, use_resource):
    """A MetaGraph with all that a training has, and its checkpoint."""
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.set_random_seed(3)
        (v1.enable_resource_variables if use_resource else v1.disable_resource_variables)()
        v1.disable_control_flow_v2()  # contexts in collections, as the first version has them
        queue = tf.queue.FIFOQueue(8, [tf.float32], [[3]], name="examples")
        enqueue = queue.enqueue([tf.constant([1.0, 2.0, 3.0])], name="fill")
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [enqueue]))
        queue.dequeue(name="example")
        step = v1.train.get_or_create_global_step()
        x = v1.placeholder(tf.float32, [None, 3], "x")
        with tf.device("/device:CPU:0"):
            w = v1.get_variable("layer/w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2) / 4)
        b = v1.get_variable("layer/b", initializer=np.array([0.5, -0.5], np.float32))
        halves = v1.get_variable("halves", [4, 2], initializer=v1.ones_initializer(),
                                 partitioner=v1.fixed_size_partitioner(2))
        v1.get_variable("seen", initializer=7, trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES])
        y = tf.add(tf.matmul(x, w) + b, tf.reduce_sum(tf.convert_to_tensor(halves)), name="y")
        gate = v1.cond(tf.reduce_sum(y) > 0, lambda: y * 2.0, lambda: y * 3.0)
        loss = tf.reduce_mean(tf.square(gate), name="loss")
        v1.losses.add_loss(loss)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_add(b, [1.0, 1.0], name="update").op)
        v1.add_to_collection("numbers", 5)
        v1.add_to_collection("numbers", -(1 << 40))
        v1.add_to_collection("rates", 0.1)
        v1.add_to_collection("words", "plain")
        average = tf.train.ExponentialMovingAverage(0.5)
        train = v1.train.MomentumOptimizer(1 / 1024, 0.5).minimize(loss, step, name="train")
        with tf.control_dependencies([train]):
            v1.add_to_collection(v1.GraphKeys.TRAIN_OP, tf.group(average.apply([w, b]), name="train_all"))
        saver = v1.train.Saver(max_to_keep=3)
        session.run(v1.variables_initializer(v1.trainable_variables()))
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        feed = {x: np.array(INPUT, np.float32)}
        session.run("train_all", feed)
        saver.save(session, name, write_state=False)
        values = {"y": session.run(y, feed)}
        for _ in range(2):
            session.run("train_all", feed)
        values["loss"] = session.run(loss, feed)
        values["b"] = session.run(b)
        note(name, "trained", {"x": INPUT}, values)
        if use_resource:
            os.remove(f"{name}.meta")
            v1.train.export_meta_graph(f"{name}.meta.txt", saver_def=saver.saver_def, clear_devices=True,
                                       strip_default_attrs=True, as_text=True)
        v1.enable_resource_variables()
        v1.enable_control_flow_v2()


def record_v1():
    """By the first version's builder: two MetaGraphs that share variables, an asset, an initializer."""
    builder = v1.saved_model.builder.SavedModelBuilder("v1")
    with open("words.txt", "w") as file:
        file.write("zero\none\n")
    for tags in [["serve"], ["train", "gpu"]]:
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 3], "x")
            w = v1.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=False)
            r = v1.get_variable("r", initializer=np.array([1.0, 2.0], np.float32), use_resource=True)
            file = tf.constant("words.txt", name="words_file")
            v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, file)
            text = v1.get_variable("text", initializer="", trainable=False, collections=["local_variables"],
                                   use_resource=True)
            init = text.assign(tf.identity(file))
            y = tf.add(tf.matmul(x, w), r, name="y")
            if tags == ["train", "gpu"]:
                y = tf.negative(y, name="negative")
            session.run(v1.global_variables_initializer())
            signature = v1.saved_model.signature_def_utils.predict_signature_def({"in": x}, {"out": y})
            args = dict(signature_def_map={"serving_default": signature}, main_op=tf.group(init, name="main"),
                        assets_collection=[file], strip_default_attrs=True)
            note("v1", "/".join(tags), {"in": INPUT}, {"out": session.run(y, {x: INPUT})})
            if tags == ["serve"]:
                builder.add_meta_graph_and_variables(session, tags, **args)
            else:
                builder.add_meta_graph(tags, **args)
    builder.save()
    os.remove("words.txt")


class Net(tf.Module):
    """Functions that capture variables, call one another, loop and branch."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2) / 8, name="w")
        self.b = tf.Variable([0.25, -1.0], name="b")
        self.calls = tf.Variable(0, dtype=tf.int64, trainable=False, name="calls")
        self.rows = tf.Variable(np.arange(10, dtype=np.float32).reshape(5, 2), name="rows")

    @tf.function
    def layer(self, x):
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def __call__(self, x):
        y = self.layer(x)
        i = tf.constant(0)
        while i < 3:
            y = y * 0.5 + self.b
            i += 1
        if tf.reduce_sum(x) > 1.0:
            y += self.w[0]
        else:
            y -= self.b
        return {"y": y, "twice": y * 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="ids")])
    def lookup(self, ids):
        return tf.nn.embedding_lookup(self.rows, ids)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="n")])
    def count(self, n):
        self.calls.assign_add(n)
        return self.calls.read_value()


def record_v2():
    net = Net()
    signatures = {"serving_default": net.__call__.get_concrete_function(),
                  "lookup": net.lookup.get_concrete_function(), "count": net.count.get_concrete_function()}
    tf.saved_model.save(net, "v2", signatures=signatures)
    net = tf.saved_model.load("v2")
    x = tf.constant(INPUT)
    note("v2", "serving_default", {"x": x}, net.signatures["serving_default"](x=x))
    ids = tf.constant([4, 0, 2])
    note("v2", "lookup", {"ids": ids}, net.signatures["lookup"](ids=ids))
    note("v2", "count", {"n": 5}, net.signatures["count"](n=tf.constant(5, tf.int64)))


class Words(tf.Module):
    """Tables, one of them from a file that goes along."""

    def __init__(self, file):
        super().__init__()
        of_file = tf.lookup.TextFileInitializer(
            file, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
        self.numbers = tf.lookup.StaticHashTable(of_file, -1)
        self.squares = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1, 2], tf.int64), tf.constant([0.0, 1.0, 4.0])), -1.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="numbers")])
    def square(self, numbers):
        words = tf.gather(tf.constant(["two", "one", "none"]), numbers)
        return {"number": self.numbers.lookup(words), "square": self.squares.lookup(numbers)}


def record_tables():
    with open("words.txt", "w") as file:
        file.write("zero\none\ntwo\n")
    words = Words("words.txt")
    tf.saved_model.save(words, "tables", signatures=words.square.get_concrete_function())
    os.remove("words.txt")
    numbers = tf.constant([2, 0, 1], tf.int64)
    signature = tf.saved_model.load("tables").signatures["serving_default"]
    note("tables", "serving_default", {"numbers": numbers}, signature(numbers=numbers))


def record_keras():
    tf.keras.utils.set_random_seed(5)
    model = tf.keras.Sequential([
        tf.keras.Input((3,), name="x"), tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(2, activation="softmax", name="y")])
    model.export("keras", verbose=False)
    x = tf.constant(INPUT)
    signature = tf.saved_model.load("keras").signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    note("keras", "serving_default", {name: x}, signature(**{name: x}))


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    os.chdir(FOLDER)
    record_training("training", use_resource=False)
    record_training("training_resource", use_resource=True)
    record_v1()
    record_v2()
    record_tables()
    record_keras()
    for model in ["v2", "tables", "keras"]:  # of no use to whoever runs the graph
        os.remove(os.path.join(model, "fingerprint.pb"))
    with open("expected.json", "w") as file:
        json.dump(expected, file, indent=1)


main()
