"""What TensorFlow's MonitoredTrainingSession with four hooks adds to a small step: the time of its `run` less that of
the session's own. A peer of scripts/bench-peers, for tests/benchmarks/monitored_step.cc.

Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON.
"""

import json
import sys
import tempfile
import time

import tensorflow as tf

v1 = tf.compat.v1


def main():
    v1.disable_eager_execution()
    v1.logging.set_verbosity(v1.logging.ERROR)
    step = v1.train.get_or_create_global_step()
    loss = tf.square(tf.constant(2.0))
    v1.summary.scalar("loss", loss)
    train = v1.assign_add(step, 1).op
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tempfile.TemporaryDirectory() as folder, v1.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=[v1.train.NanTensorHook(loss)], config=config) as session:
        raw = session._tf_sess()
        fetches = [loss, train]

        def micros(run):
            before = time.perf_counter()
            run(fetches)
            return (time.perf_counter() - before) * 1e6

        for _ in range(200):
            session.run(fetches)
            raw.run(fetches)
        for line in sys.stdin:
            end = time.perf_counter() + float(line)
            pairs = []
            while not pairs or time.perf_counter() < end:
                pairs.append((micros(session.run), micros(raw.run)))
            added, plain = (sorted(p[i] for p in pairs) for i in (0, 1))
            middle = len(pairs) // 2
            print(json.dumps({"threads": 1, "runs": len(pairs), "min_us": added[0] - plain[0],
                              "median_us": added[middle] - plain[middle], "step_us": plain[middle]}), flush=True)


main()
