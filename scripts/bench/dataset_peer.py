"""Elements through tf.data, or pandas, from the files of tests/benchmarks/dataset_pipeline.cc, with the settings that are
the fastest. A peer of scripts/bench-peers: records|raw|text|csv|pandas FOLDER THREADS [graph].

`graph` draws the batches in a loop of a graph instead of giving each to Python. Each line of the standard input is a
number of seconds to run for; each is answered by one line of JSON: times of 200 batches of 100.
"""

import itertools
import json
import os
import sys
import time

BATCH, BATCHES = 100, 200


def pandas_rows(path):
    import pandas

    while True:
        yield from pandas.read_csv(path, header=None, chunksize=BATCH)


def dataset(what, folder, threads):
    import tensorflow as tf

    if what == "text":
        data = tf.data.TextLineDataset(os.path.join(folder, "lines.txt"), buffer_size=1 << 20).repeat().batch(BATCH)
    elif what == "csv":
        defaults = [0, 0.0, 0.0, "", tf.constant(0, tf.int64)]
        data = tf.data.experimental.CsvDataset(os.path.join(folder, "rows.csv"), defaults,
                                               buffer_size=1 << 20).repeat().batch(BATCH)
    else:
        data = tf.data.TFRecordDataset(os.path.join(folder, "examples.tfrecord"), buffer_size=1 << 20)
        data = data.shuffle(10000, seed=1).repeat().batch(BATCH)
    if what == "records":
        features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
        data = data.map(lambda batch: tf.io.parse_example(batch, features),
                        num_parallel_calls=tf.data.AUTOTUNE if threads > 1 else None)
    if threads > 1:
        data = data.prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    return data.with_options(options)


def main():
    what, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    in_graph = sys.argv[4:] == ["graph"]
    if what == "pandas":
        iterator = pandas_rows(os.path.join(folder, "rows.csv"))
    else:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        data = dataset(what, folder, threads)
        iterator = iter(data)

    def some():
        for _ in itertools.islice(iterator, BATCHES):
            pass

    if in_graph:
        @tf.function
        def some():
            for _ in tf.range(BATCHES):
                iterator.get_next()

    some()
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times = []
        while not times or time.perf_counter() < end:
            before = time.perf_counter()
            some()
            times.append((time.perf_counter() - before) * 1e6)
        times.sort()
        print(json.dumps({"threads": threads, "runs": len(times), "min_us": times[0],
                          "median_us": times[len(times) // 2]}), flush=True)


main()
