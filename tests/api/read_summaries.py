"""read_summaries.py FOLDER: TensorFlow, and TensorBoard if it is there, read the event file that
summary_interchange_realtime_test.cc has written. Prints "all read", or what is wrong.
"""

import glob
import importlib.util
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf


def check(fact, *what):
    if not fact:
        sys.exit(" ".join(str(w) for w in what))


(file,) = glob.glob(sys.argv[1] + "/*tfevents*")
events = list(tf.compat.v1.train.summary_iterator(file))
kinds = [e.WhichOneof("what") for e in events]
check(kinds == ["file_version", "graph_def", "session_log", "summary", "summary", "tagged_run_metadata"], kinds)
graph = tf.compat.v1.GraphDef.FromString(events[1].graph_def)
check({"HistogramSummary", "MergeSummary"} <= {n.op for n in graph.node}, graph)
tf.import_graph_def(graph)
metadata = tf.compat.v1.RunMetadata.FromString(events[5].tagged_run_metadata.run_metadata)
check(len(metadata.step_stats.dev_stats) == 1, metadata)
values = {v.tag: v for v in events[3].summary.value}
check(set(values) == {"loss", "weights", "photo/image", "sound/audio", "notes"}, set(values))
check(values["loss"].simple_value == 0.25, values["loss"])
check(values["weights"].histo.num == 3 and sum(values["weights"].histo.bucket) == 3, values["weights"])
photo = tf.io.decode_png(values["photo/image"].image.encoded_image_string).numpy()
check(photo.tolist() == [[[0, 1, 2], [3, 4, 5]]], photo)
sound, rate = tf.audio.decode_wav(values["sound/audio"].audio.encoded_audio_string)
check(rate == 8000 and np.allclose(sound, [[0.5], [-0.25]]), sound, rate)
check(tf.make_ndarray(values["notes"].tensor).tolist() == [b"one", b"two"], values["notes"])

if importlib.util.find_spec("tensorboard"):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    board = EventAccumulator(sys.argv[1])
    board.Reload()
    tags = board.Tags()
    check(tags["scalars"] == ["loss"] and tags["images"] == ["photo/image"] and tags["audio"] == ["sound/audio"]
          and tags["histograms"] == ["weights"] and tags["tensors"] == ["notes"] and tags["graph"]
          and tags["run_metadata"] == ["step_2"], tags)
    check([(e.step, e.value) for e in board.Scalars("loss")] == [(1, 0.25), (2, 0.25)], board.Scalars("loss"))
print("all read")
