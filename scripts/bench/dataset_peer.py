"""Elements through tf.data, pandas or torchvision, from the files of tests/benchmarks/dataset_pipeline.cc, with the settings
that are the fastest. A peer of scripts/bench-peers: records|raw|text|csv|jpeg|pandas|torchvision FOLDER THREADS [graph].

`graph` draws the batches in a loop of a graph instead of giving each to Python. Each line of the standard input is a
number of seconds to run for; each is answered by one line of JSON: times of 200 batches of 100, of JPEG files 8 of 32.
"""

import itertools
import json
import os
import sys
import time

BATCH, BATCHES = 100, 200
PHOTOS, PHOTO_BATCH, PHOTO_BATCHES = 64, 32, 8
RESIZED, CROP = 256, 224
MEAN, DEVIATION = [123.68, 116.78, 103.94], [58.4, 57.1, 57.4]


def photos(folder):
    return [os.path.join(folder, f"{i}.jpg") for i in range(PHOTOS)]


class Photos:
    """For a DataLoader: sizes and types stay those of bytes until the last step."""

    def __init__(self, folder):
        self.paths = photos(folder)

    def __len__(self):
        return PHOTO_BATCH * PHOTO_BATCHES

    def __getitem__(self, i):
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg, read_file
        from torchvision.transforms.v2 import functional

        image = decode_jpeg(read_file(self.paths[i % PHOTOS]), mode=ImageReadMode.RGB)
        image = functional.resize(image, [RESIZED, RESIZED], antialias=False)
        y, x, turned = (int(torch.randint(n, ())) for n in (RESIZED - CROP + 1, RESIZED - CROP + 1, 2))
        image = image[:, y:y + CROP, x:x + CROP]
        if turned:
            image = functional.horizontal_flip(image)
        return functional.normalize(image.float(), MEAN, DEVIATION, inplace=True)


def torch_batches(folder, threads):
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Photos(folder), batch_size=PHOTO_BATCH, shuffle=True,
                                         num_workers=threads if threads > 1 else 0, persistent_workers=threads > 1)
    while True:
        yield from loader


def vary(path):
    import tensorflow as tf

    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, (RESIZED, RESIZED))
    corner = tf.concat([tf.random.uniform([2], 0, RESIZED - CROP + 1, tf.int32), [0]], 0)
    image = tf.image.random_flip_left_right(tf.slice(image, corner, [CROP, CROP, 3]))
    return (image - MEAN) * [1 / d for d in DEVIATION]


def pandas_rows(path):
    import pandas

    while True:
        yield from pandas.read_csv(path, header=None, chunksize=BATCH)


def dataset(what, folder, threads):
    import tensorflow as tf

    parallel = tf.data.AUTOTUNE if threads > 1 else None
    if what == "jpeg":
        data = tf.data.Dataset.from_tensor_slices(photos(folder)).shuffle(PHOTOS).repeat()
        data = data.map(vary, num_parallel_calls=parallel).batch(PHOTO_BATCH)
    elif what == "text":
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
        data = data.map(lambda batch: tf.io.parse_example(batch, features), num_parallel_calls=parallel)
    if threads > 1:
        data = data.prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    return data.with_options(options)


def main():
    what, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    in_graph = sys.argv[4:] == ["graph"]
    batches = PHOTO_BATCHES if what in ("jpeg", "torchvision") else BATCHES
    if what == "pandas":
        iterator = pandas_rows(os.path.join(folder, "rows.csv"))
    elif what == "torchvision":
        iterator = torch_batches(folder, threads)
    else:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        data = dataset(what, folder, threads)
        iterator = iter(data)

    def some():
        for _ in itertools.islice(iterator, batches):
            pass

    if in_graph:
        @tf.function
        def some():
            for _ in tf.range(batches):
                iterator.get_next()

    for line in sys.stdin:
        # What was prefetched while others had the machine: much, where the depth tunes itself.
        warm = time.perf_counter() + float(line) / 2
        while time.perf_counter() < warm:
            some()
        end = time.perf_counter() + float(line)
        times = []
        while not times or time.perf_counter() < end:
            before = time.perf_counter()
            some()
            times.append((time.perf_counter() - before) * 1e6)
        times.sort()
        # What was read ahead is there at once: of a slice it is the mean that counts.
        print(json.dumps({"threads": threads, "runs": len(times), "min_us": sum(times) / len(times),
                          "median_us": times[len(times) // 2]}), flush=True)


main()
