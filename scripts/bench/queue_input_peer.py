"""Records through TensorFlow's queues: a peer of scripts/bench-peers, for tests/benchmarks/queue_input.cc.

    queue_input_peer.py FILE.meta THREADS

Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON, whose times are
means: a batch may be there already.
"""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import tensorflow as tf

v1 = tf.compat.v1


def main():
    file, threads = sys.argv[1], int(sys.argv[2])
    v1.disable_eager_execution()
    v1.logging.set_verbosity(v1.logging.ERROR)
    v1.train.import_meta_graph(file)
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    with v1.Session(config=config) as session:
        batch = session.make_callable(["images:0", "labels:0"])
        coordinator = v1.train.Coordinator()
        runners = v1.train.start_queue_runners(session, coordinator)
        for _ in range(100):
            batch()
        for line in sys.stdin:
            begin, runs, passed = time.perf_counter(), 0, 0
            while not runs or passed < float(line):
                batch()
                runs += 1
                passed = time.perf_counter() - begin
            mean = 1e6 * passed / runs
            print(json.dumps({"threads": threads, "runs": runs, "min_us": mean, "median_us": mean}), flush=True)
        coordinator.request_stop()
        coordinator.join(runners, stop_grace_period_secs=10)


main()
