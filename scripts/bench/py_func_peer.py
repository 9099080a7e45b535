"""TensorFlow's py_func: a chain of 100 nodes that call a Python function. A peer of scripts/bench-peers.

Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON.
"""

import json
import sys
import time

import tensorflow as tf

NODES = 100


def main():
    tf.compat.v1.disable_eager_execution()
    x = tf.compat.v1.placeholder(tf.float32, [])
    y = x
    for _ in range(NODES):
        y = tf.compat.v1.py_func(lambda value: value, [y], tf.float32)
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.compat.v1.Session(config=config) as session:
        step = session.make_callable(y, [x])
        step(1.0)
        for line in sys.stdin:
            end = time.perf_counter() + float(line)
            times = []
            while not times or time.perf_counter() < end:
                before = time.perf_counter()
                step(1.0)
                times.append((time.perf_counter() - before) * 1e6)
            times.sort()
            print(json.dumps({"threads": 1, "runs": len(times), "min_us": times[0],
                              "median_us": times[len(times) // 2]}), flush=True)


main()
