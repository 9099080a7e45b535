"""load_with_tensorflow.py FOLDER: TensorFlow loads what interchange_realtime_test.cc has written, and computes the
same. What it should find is in FOLDER/expected.json. Prints "all agree", or what differs.
"""

import json
import os
import sys

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
folder = sys.argv[1]
with open(os.path.join(folder, "expected.json")) as file:
    expected = json.load(file)


def check(fact, *what):
    if not fact:
        sys.exit(" ".join(str(w) for w in what))


def close(got, want, *what):
    check(np.allclose(got, want, rtol=1e-6), *what, got, want)


def train(meta, scope):
    """Restores our training by its own saver and goes on with it."""
    with tf.Graph().as_default() as graph, v1.Session() as session:
        saver = v1.train.import_meta_graph(os.path.join(folder, meta), import_scope=scope, clear_devices=True)
        prefix = scope + "/" if scope else ""
        saver.restore(session, os.path.join(folder, "training"))
        feed = {prefix + "x:0": np.array(expected["x"], np.float32)}
        (w,) = v1.trainable_variables()
        check(w.op.name == prefix + "w/handle", w)
        close(session.run(w), expected["w"], "restored")
        (op,) = v1.get_collection(v1.GraphKeys.TRAIN_OP)
        session.run(op, feed)
        (loss,) = v1.get_collection(v1.GraphKeys.LOSSES)
        close(session.run(loss, feed), expected["loss"], "loss")
        close(session.run(v1.train.get_global_step()), expected["step"], "step")
        check([v.op.name for v in v1.local_variables()] == [prefix + "local/handle"], v1.local_variables())
        session.run(v1.local_variables_initializer())
        (runner,) = v1.get_collection(v1.GraphKeys.QUEUE_RUNNERS)
        coordinator = v1.train.Coordinator()
        threads = runner.create_threads(session, coordinator, start=True)
        close(session.run(prefix + "example:0"), 7.0, "queue")
        coordinator.request_stop()
        coordinator.join(threads)
        # What TensorFlow makes of it again.
        session.run(v1.global_variables_initializer())


def load(name, tags):
    with tf.Graph().as_default(), v1.Session() as session:
        model = v1.saved_model.loader.load(session, tags, os.path.join(folder, name))
        signature = model.signature_def["serving_default"]
        out = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: expected["x"]})
        close(out, expected["y"], name)
        path = session.run("words_path:0")
        with open(path) as file:
            check(os.path.dirname(path) == os.path.join(folder, name, "assets").encode(), path)
            check(file.read() == "zero\none\n", path)
    if tags == ["serve"]:
        model = tf.saved_model.load(os.path.join(folder, name), tags)  # the second version's loader
        close(model.signatures["serving_default"](x=tf.constant(expected["x"]))["y"], expected["y"], name, "by v2")


for meta in expected["metas"]:
    for scope in [None, "outer/inner"]:
        train(meta, scope)
for name in expected["models"]:
    load(name, ["serve"])
    load(name, ["train", "gpu"])
print("all agree")
