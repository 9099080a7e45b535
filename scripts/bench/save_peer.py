"""Saves variables with TensorFlow and syncs the files, which TensorFlow itself does not; or restores them. A peer of
scripts/bench-peers, for tests/benchmarks/save_restore.cc: save|restore COUNT ELEMENTS.

Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON.
"""

import glob
import json
import os
import sys
import tempfile
import time

import tensorflow as tf

v1 = tf.compat.v1


def sync(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def main():
    what, count, elements = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    v1.disable_eager_execution()
    v1.logging.set_verbosity(v1.logging.ERROR)
    for i in range(count):
        v1.get_variable(f"v{i}", [elements], initializer=v1.constant_initializer(0.5), use_resource=True)
    saver = v1.train.Saver()
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tempfile.TemporaryDirectory(dir="build") as folder, v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        path = os.path.join(folder, "model")

        def save():
            saver.save(session, path, write_meta_graph=False)
            for file in glob.glob(path + ".*"):
                sync(file)
            sync(folder)

        save()
        run = save if what == "save" else lambda: saver.restore(session, path)
        run()
        for line in sys.stdin:
            end = time.perf_counter() + float(line)
            times = []
            while not times or time.perf_counter() < end:
                before = time.perf_counter()
                run()
                times.append((time.perf_counter() - before) * 1e6)
            times.sort()
            print(json.dumps({"threads": 1, "runs": len(times), "min_us": times[0],
                              "median_us": times[len(times) // 2]}), flush=True)


main()
