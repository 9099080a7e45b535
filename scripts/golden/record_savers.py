#!/usr/bin/env python3
"""scripts/golden/record_savers.py: writes tests/api/training/testdata/savers with TensorFlow 2.21.

For each scenario NAME: NAME.meta, the MetaGraph with TensorFlow's saver; NAME.index and NAME.data-*, or NAME and NAME-* of the
V1 format, the checkpoint that it saved. state_*.txt: state files after the saves that saver_test.cc makes, too.
"""

import os
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "../../tests/api/training/testdata/savers")


def values(shape, dtype, start):
    return (np.arange(np.prod(shape)).reshape(shape) + start).astype(dtype)


def variables(resource):
    """The same in every scenario, in an order that is not that of the names."""
    with v1.variable_scope("", use_resource=resource):
        w = v1.get_variable("w", initializer=values([2, 3], np.float32, 0.5))
        with v1.variable_scope("layer"):
            b = v1.get_variable("b", initializer=values([3], np.float64, 10))
        step = v1.get_variable("global_step", initializer=np.int64(7), trainable=False)
    return w, b, step


def partitioned(resource):
    with v1.variable_scope("", use_resource=resource):
        v1.get_variable("table", initializer=tf.constant(values([7, 2], np.float32, 100)),
                        partitioner=v1.fixed_size_partitioner(3))


def devices(names):
    """Variables of two devices."""
    with v1.device(names[0]):
        v1.get_variable("w", initializer=values([2, 3], np.float32, 0.5), use_resource=False)
        v1.get_variable("u", initializer=values([2], np.int32, 3), use_resource=False)
    with v1.device(names[1]):
        v1.get_variable("b", initializer=values([3], np.float64, 10), use_resource=False)


V1 = v1.train.SaverDef.V1
SCENARIOS = {
    "plain": (lambda: variables(False), {}),
    "resource": (lambda: variables(True), {}),
    "partitioned": (lambda: (variables(False), partitioned(False)), {}),
    "partitioned_resource": (lambda: partitioned(True), {}),
    "reshape": (lambda: variables(False), {"reshape": True}),
    "sharded": (lambda: devices(["/cpu:0", "/cpu:1"]), {"sharded": True}),
    "sharded_one": (lambda: variables(False), {"sharded": True}),
    "sharded_ps": (lambda: devices(["/job:ps/task:0", "/job:ps/task:1"]), {"sharded": True}),
    "v1": (lambda: variables(False), {"write_version": V1}),
    "v1_sharded": (lambda: devices(["/cpu:0", "/cpu:1"]), {"write_version": V1, "sharded": True}),
}


def record(name, make, options):
    with tf.Graph().as_default() as graph:
        make()
        init = v1.global_variables_initializer()
        saver = v1.train.Saver(max_to_keep=3, keep_checkpoint_every_n_hours=2.5, **options)
        v1.add_to_collection("savers", saver)
        v1.train.export_meta_graph(os.path.join(OUT, name + ".meta"), saver_def=saver.as_saver_def(),
                                   strip_default_attrs=False)
        if name == "sharded_ps":
            return
        config = v1.ConfigProto(device_count={"CPU": 2})
        with v1.Session(graph=graph, config=config) as session:
            session.run(init)
            saver.save(session, os.path.join(OUT, name), write_meta_graph=False, write_state=False)


def states():
    """State files: of a folder by its absolute name, the same with relative paths, and of one by its relative name."""
    where = tempfile.mkdtemp()
    os.chdir(where)
    for name, folder, options in (
        ("absolute", where, {}),
        ("saved_relative", where, {"save_relative_paths": True}),
        ("relative", "run", {}),
        ("latest_only", "run", {"max_to_keep": 0}),
        ("padded", "run", {"pad_step_number": True}),
    ):
        with tf.Graph().as_default():
            variables(False)
            init = v1.global_variables_initializer()
            saver = v1.train.Saver(**{"max_to_keep": 2, **options})
            shutil.rmtree("run", ignore_errors=True)
            os.makedirs("run")
            with v1.Session() as session:
                session.run(init)
                for step in (5, 6, 8, 6):
                    saver.save(session, os.path.join(folder, "model"), global_step=step, write_meta_graph=False)
            with open(os.path.join(folder, "checkpoint")) as file:
                text = file.read().replace(where, "FOLDER")
            files = " ".join(sorted(f for f in os.listdir(folder) if f.startswith("model")))
            with open(os.path.join(OUT, f"state_{name}.txt"), "w") as file:
                file.write(text + "# " + files + "\n")
            for file in os.listdir(where):
                if file != "run":
                    os.remove(os.path.join(where, file))
    os.chdir(HERE)
    shutil.rmtree(where)


shutil.rmtree(OUT, ignore_errors=True)
os.makedirs(OUT)
for scenario, (make, options) in SCENARIOS.items():
    record(scenario, make, options)
states()
