"""Goes on from the folder of saver_interchange_realtime_test.cc: prints "good" if all is as it should be there."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

folder = sys.argv[1]
state = tf.train.get_checkpoint_state(folder)
assert state.model_checkpoint_path == folder + "/model-3", state
assert list(state.all_model_checkpoint_paths) == [folder + "/model-2", folder + "/model-3"], state
assert not os.path.exists(folder + "/model-1.index") and not os.path.exists(folder + "/model-1.meta")
latest = tf.train.latest_checkpoint(folder)
listed = [(name, shape) for name, shape in tf.train.list_variables(latest)]
assert listed == [("global_step", []), ("layer/half", []), ("table", [5, 2]), ("w", [3]), ("words", [2])], listed
reader = tf.train.load_checkpoint(latest)
assert reader.get_tensor("global_step") == 3
assert reader.get_tensor("layer/half") == 1.5
assert list(reader.get_tensor("words")) == [b"a", b"\xff"]
assert np.array_equal(reader.get_tensor("table"), [[1, 1]] * 3 + [[7, 7]] * 2)

# A program of its own, with the table in one piece.
with tf.Graph().as_default():
    table = v1.get_variable("table", [5, 2])
    w = v1.get_variable("w", [3])
    with v1.Session() as session:
        v1.train.Saver().restore(session, latest)
        assert np.array_equal(session.run(table)[4], [7, 7])

# The program that was saved.
with tf.Graph().as_default():
    saver = v1.train.import_meta_graph(latest + ".meta")
    names = [variable.op.name for variable in v1.global_variables()]
    assert "w/handle" in names and "table/part_1/handle" in names, names
    parts = [variable for variable in v1.global_variables() if variable.op.name == "table/part_1/handle"]
    assert parts[0]._get_save_slice_info().var_offset == [3, 0]
    assert len(v1.get_collection("savers")) == 1
    with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
        saver.restore(session, latest)
        assert list(session.run("w/read:0")) == [1, 2, 3]
        w = next(variable for variable in v1.global_variables() if variable.op.name == "w/handle")
        session.run(w.assign([10, 20, 30]))
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        saver.save(session, folder + "/model", global_step=4)
print("good")
