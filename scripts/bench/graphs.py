"""Writes the graphs of scripts/bench-peers, with TensorFlow's own Python library.

    graphs.py FOLDER

leaves FOLDER/NAME.pb (GraphDef), the .npy files that are fed and FOLDER/graphs.json: per name
{"init": [...], "feeds": {name: file}, "fetches": [...], "targets": [...]}, and for graphs of one kernel what
onednn_raw is to be told: {"raw": [...], "calls": nodes of the graph, "inputs": different inputs}.
"""

import gzip
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_control_flow_v2()

FASHION_MNIST = "/usr/share/datasets/fashion-mnist/"
BATCH = 100
# (m, k, n) and (batch, side, channels in, filter side, channels out, stride).
PRODUCTS = [(100, 784, 200), (128, 1024, 1024), (512, 512, 512), (2048, 2048, 2048), (16, 16, 16),
            (32, 32, 32)]
CONVOLUTIONS = [(100, 28, 1, 6, 6, 1), (100, 28, 6, 5, 12, 2), (8, 56, 64, 3, 64, 1),
                (8, 14, 256, 3, 256, 1)]
# Inputs of nodes of a kind that a graph holds: as many as are needed, within this many bytes.
INPUT_BYTES = 32 << 20


def num_nodes(operations):
    """A hundred nodes; ten where a hundred would take many seconds."""
    return 100 if operations < 5e9 else 10


def num_inputs(nodes, bytes_each):
    return max(1, min(nodes, INPUT_BYTES // bytes_each))


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.described = {}
        self.random = np.random.default_rng(1)

    def save(self, name, graph, init=(), feeds=None, fetches=(), targets=(), **more):
        with open(f"{self.folder}/{name}.pb", "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        files = {}
        for key, value in (feeds or {}).items():
            files[key] = f"{name}.{key}.npy"
            np.save(f"{self.folder}/{files[key]}", value)
        self.described[name] = {"init": list(init), "feeds": files, "fetches": list(fetches),
                                "targets": list(targets), **more}

    # --- nodes -------------------------------------------------------------------------------

    def chain(self, name, op, count=10000):
        with tf.Graph().as_default() as graph:
            x = tf.constant(1.0)
            for _ in range(count):
                x = op(x)
            tf.group(x, name="done")
            self.save(name, graph, targets=["done"])

    def layers(self, width=100, depth=100):
        with tf.Graph().as_default() as graph:
            row = [tf.constant(float(i)) for i in range(width)]
            for _ in range(depth):
                row = [tf.minimum(row[i], row[(i + 1) % width]) for i in range(width)]
            tf.group(*row, name="done")
            self.save("minimum", graph, targets=["done"])

    def no_ops(self, count=10000):
        with tf.Graph().as_default() as graph:
            last = None
            for i in range(count):
                with graph.control_dependencies([last] if last is not None else []):
                    last = v1.no_op(name="done" if i == count - 1 else None)
            self.save("noop", graph, targets=["done"])

    def null_run(self):
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [], name="x")
            tf.identity(x, name="y")
            self.save("null", graph, feeds={"x": np.float32(1)}, fetches=["y"])

    # --- control flow and functions ------------------------------------------------------------

    def loop(self, count=10000):
        with tf.Graph().as_default() as graph:
            tf.group(while_loop(lambda i: i < count, lambda i: i + 1, [tf.constant(0)]), name="done")
            self.save("while", graph, targets=["done"])

    def nested_loop(self, outer=100, inner=100):
        with tf.Graph().as_default() as graph:

            def row(i, n):
                _, n = while_loop(lambda j, n: j < inner, lambda j, n: [j + 1, n + 1], [tf.constant(0), n])
                return [i + 1, n]

            result = while_loop(lambda i, n: i < outer, row, [tf.constant(0), tf.constant(0)])
            tf.group(*result, name="done")
            self.save("while_nested", graph, targets=["done"])

    def product_loop(self, size=64, count=1000):
        with tf.Graph().as_default() as graph:
            w = tf.constant(self.random.uniform(-0.1, 0.1, (size, size)).astype(np.float32))
            x = tf.constant(self.random.uniform(-1, 1, (size, size)).astype(np.float32))
            result = while_loop(lambda i, x: i < count, lambda i, x: [i + 1, tf.matmul(x, w)],
                                [tf.constant(0), x])
            tf.group(*result, name="done")
            self.save("while_matmul", graph, targets=["done"])

    def conds(self, count=1000):
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [], name="x")
            y = x
            for i in range(count):
                y = v1.cond(y > 0.0, lambda y=y: y - 1.0, lambda y=y: y + 1.0)
            tf.group(y, name="done")
            self.save("conds", graph, feeds={"x": np.float32(0.5)}, targets=["done"])

    def calls(self, count=10000):
        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)], experimental_attributes={"_noinline": True})
        def trivial(x):
            return tf.raw_ops.Neg(x=x)

        with tf.Graph().as_default() as graph:
            y = v1.placeholder(tf.float32, [], name="x")
            for _ in range(count):
                y = trivial(y)
            tf.group(y, name="done")
            self.save("calls", graph, feeds={"x": np.float32(1)}, targets=["done"])

    def lstm(self, units=128, steps=50, batch=32):
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(1)
            images = v1.placeholder(tf.float32, [steps, batch, units], name="x")
            weights = variable([2 * units, 4 * units])
            biases = variable([4 * units], 0.0)
            inputs = tf.TensorArray(tf.float32, steps).unstack(images)
            outputs = tf.TensorArray(tf.float32, steps, element_shape=[batch, units])

            def step(t, c, h, outputs):
                gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs.read(t), h], 1), weights), biases)
                i, j, f, o = tf.split(gates, 4, 1)
                c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
                h = tf.tanh(c) * tf.sigmoid(o)
                return [t + 1, c, h, outputs.write(t, h)]

            zeros = tf.zeros([batch, units])
            last = while_loop(lambda t, *_: t < steps, step, [tf.constant(0), zeros, zeros, outputs])
            y = tf.identity(last[3].stack(), name="y")
            loss = tf.reduce_mean(tf.square(y - 0.5))
            v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
            v1.variables_initializer(v1.global_variables(), name="init")
            feeds = {"x": self.random.uniform(-1, 1, (steps, batch, units)).astype(np.float32)}
            self.save("lstm_forward", graph, init=["init"], feeds=feeds, fetches=["y"])
            self.save("lstm_train", graph, init=["init"], feeds=feeds, targets=["train"])

    # --- kernels -----------------------------------------------------------------------------

    # --- synchronisation ---------------------------------------------------------------------

    def table(self, name, make, keys, batches=100):
        """All keys of a table, in another order, looked up in batches."""
        with tf.Graph().as_default() as graph:
            order = self.random.permutation(len(keys))
            table = make()
            values = tf.range(len(keys), dtype=tf.int64)
            if name == "table_mutable":
                init = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
            else:
                init = tf.raw_ops.InitializeTableV2(table_handle=table, keys=keys, values=values)
            found = [tf.raw_ops.LookupTableFindV2(table_handle=table, keys=batch,
                                                  default_value=tf.constant(-1, tf.int64))
                     for batch in np.array_split(keys[order], batches)]
            tf.group(*found, name="done")
            self.save(name, graph, init=[init.name], targets=["done"])

    def tables(self, count=1000000):
        raw = tf.raw_ops
        numbers = np.arange(count, dtype=np.int64) * 7919
        words = np.array([b"word %d" % i for i in range(count)], dtype=object)
        shared = {"value_dtype": tf.int64, "shared_name": "t"}
        self.table("table_int64", lambda: raw.HashTableV2(key_dtype=tf.int64, **shared), numbers)
        self.table("table_string", lambda: raw.HashTableV2(key_dtype=tf.string, **shared), words)
        self.table("table_mutable", lambda: raw.MutableHashTableV2(key_dtype=tf.int64, **shared),
                   numbers)

    def chained(self, name, count, add):
        """`count` times the nodes of `add`, one after another."""
        with tf.Graph().as_default() as graph:
            last = []
            for _ in range(count):
                with tf.control_dependencies(last):
                    last = add()
            tf.group(*last, name="done")
            self.save(name, graph, targets=["done"])

    def barrier(self, count=100):
        raw = tf.raw_ops
        handle = []

        def add():
            if not handle:
                with tf.control_dependencies(None):
                    handle.append(raw.Barrier(component_types=[tf.float32, tf.int64],
                                              shapes=[[], []], shared_name="b"))
            first = raw.BarrierInsertMany(handle=handle[0], keys=["key"], values=[1.0],
                                          component_index=0)
            with tf.control_dependencies([first]):
                second = raw.BarrierInsertMany(handle=handle[0], keys=["key"],
                                               values=tf.constant([1], tf.int64), component_index=1)
            with tf.control_dependencies([second]):
                return [raw.BarrierTakeMany(handle=handle[0], num_elements=1,
                                            component_types=[tf.float32, tf.int64]).keys]

        self.chained("barrier", count, add)

    def queue(self, count=1000):
        """An element in, an element out."""
        raw = tf.raw_ops
        handle = []

        def add():
            if not handle:
                with tf.control_dependencies(None):
                    handle.append(raw.FIFOQueueV2(component_types=[tf.float32], shapes=[[]], shared_name="q"))
                    handle.append(tf.constant(1.0))
            put = raw.QueueEnqueueV2(handle=handle[0], components=[handle[1]])
            with tf.control_dependencies([put]):
                return [raw.QueueDequeueV2(handle=handle[0], component_types=[tf.float32])[0]]

        self.chained("queue", count, add)

    def staging(self, count=1000):
        def add():
            put = tf.raw_ops.Stage(values=[tf.constant(1.0)], shared_name="s")
            with tf.control_dependencies([put]):
                return [tf.raw_ops.Unstage(dtypes=[tf.float32], shared_name="s")[0]]

        self.chained("staging", count, add)

    # --- input -------------------------------------------------------------------------------

    def parse_example(self, name, features, sparse, dense, count=20, batch=100):
        """Batches of Examples, of which `features(random)` gives the values."""
        kinds = {bytes: lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v)),
                 float: lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
                 int: lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v))}

        def example():
            given = {key: kinds[kind](values) for key, (kind, values) in features(self.random).items()}
            message = tf.train.Example(features=tf.train.Features(feature=given))
            return message.SerializeToString()

        with tf.Graph().as_default() as graph:
            batches = [tf.constant([example() for _ in range(batch)]) for _ in range(count)]
            parsed = [tf.raw_ops.ParseExampleV2(
                serialized=one, names=[], sparse_keys=list(sparse), dense_keys=list(dense), ragged_keys=[],
                dense_defaults=[tf.constant([], kind) for kind, _ in dense.values()],
                num_sparse=len(sparse), sparse_types=list(sparse.values()), ragged_value_types=[],
                ragged_split_types=[], dense_shapes=[shape for _, shape in dense.values()])
                for one in batches]
            tf.group(*[tensor.op for one in parsed for tensor in one.dense_values], name="done")
            self.save(name, graph, targets=["done"])

    def parsing(self):
        def image(random):
            return {"image_raw": (bytes, [random.bytes(784)]), "label": (int, [random.integers(10)])}

        self.parse_example("parse_image", image, {},
                           {"image_raw": (tf.string, []), "label": (tf.int64, [])})

        def table(random):
            numbers = {f"number_{i}": (float, [random.random()]) for i in range(8)}
            ids = {f"ids_{i}": (int, list(random.integers(100000, size=random.integers(8)))) for i in range(4)}
            return {**numbers, **ids, "embedding": (float, list(random.random(64)))}

        self.parse_example("parse_table", table, {f"ids_{i}": tf.int64 for i in range(4)},
                           {**{f"number_{i}": (tf.float32, [1]) for i in range(8)},
                            "embedding": (tf.float32, [64])})
        with tf.Graph().as_default() as graph:
            row = lambda: b",".join([b"%.6g" % x for x in self.random.random(4)]
                                    + [b"%d" % x for x in self.random.integers(1000000, size=3)] + [b"some text"])
            defaults = [tf.constant([], kind) for kind in [tf.float32] * 4 + [tf.int64] * 3 + [tf.string]]
            lines = [tf.constant([row() for _ in range(1000)]) for _ in range(10)]
            tf.group(*[tf.raw_ops.DecodeCSV(records=one, record_defaults=defaults)[0].op for one in lines],
                     name="done")
            self.save("decode_csv", graph, targets=["done"])

    def queue_input(self, files=4, records=5000, batch=100):
        """Record files, and a pipeline of queues that reads, shuffles and parses them: a MetaGraph."""
        names = [os.path.abspath(f"{self.folder}/records-{i}.tfrecord") for i in range(files)]
        for name in names:
            with tf.io.TFRecordWriter(name) as writer:
                for _ in range(records):
                    image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[self.random.bytes(784)]))
                    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[self.random.integers(10)]))
                    writer.write(tf.train.Example(features=tf.train.Features(
                        feature={"image_raw": image, "label": label})).SerializeToString())
        for name, threads, read in (("queue_input", 2, lambda reader, queue: reader.read_up_to(queue, batch)),
                                    ("queue_input_single", 2, lambda reader, queue: reader.read(queue))):
            with tf.Graph().as_default() as graph:
                queue = v1.train.string_input_producer(names)
                lists = [[read(v1.TFRecordReader(), queue)[1]] for _ in range(threads)]
                many = name == "queue_input"
                examples = v1.train.shuffle_batch_join(
                    lists, batch, capacity=4000, min_after_dequeue=2000, enqueue_many=many, shapes=[[]])
                parsed = v1.io.parse_example(examples, {"image_raw": tf.io.FixedLenFeature([], tf.string),
                                                        "label": tf.io.FixedLenFeature([], tf.int64)})
                tf.identity(parsed["image_raw"], name="images")
                tf.identity(parsed["label"], name="labels")
                v1.train.export_meta_graph(f"{self.folder}/{name}.meta", graph=graph)

    def constants(self, shape, count):
        return [tf.constant(self.random.uniform(-1, 1, shape).astype(np.float32)) for _ in range(count)]

    def products(self, name, m, k, n, count, inputs):
        with tf.Graph().as_default() as graph:
            a, b = self.constants((m, k), inputs), self.constants((k, n), inputs)
            tf.group(*[tf.matmul(a[i % inputs], b[i % inputs]).op for i in range(count)], name="done")
            more = {"raw": ["matmul", str(m), str(k), str(n)], "calls": count, "inputs": inputs}
            self.save(name, graph, targets=["done"], **(more if name != "products" else {}))

    def convolutions(self, kind, name, batch, side, depth, size, filters, stride):
        out = (side + stride - 1) // stride
        flops = 2.0 * batch * out * out * filters * size * size * depth
        count = num_nodes(flops)
        bytes_each = 4 * batch * max(side * side * depth, out * out * filters)
        inputs = num_inputs(count, bytes_each)
        images, outputs = (batch, side, side, depth), (batch, out, out, filters)
        weights = (size, size, depth, filters)
        with tf.Graph().as_default() as graph:
            x = self.constants(images, inputs) if kind != "data" else None
            w = self.constants(weights, inputs) if kind != "filter" else None
            d = self.constants(outputs, inputs) if kind != "forward" else None
            nodes = []
            for i in range(count):
                j = i % inputs
                if kind == "forward":
                    y = tf.nn.conv2d(x[j], w[j], stride, "SAME")
                elif kind == "data":
                    y = v1.nn.conv2d_backprop_input(images, w[j], d[j], [1, stride, stride, 1], "SAME")
                else:
                    y = v1.nn.conv2d_backprop_filter(x[j], weights, d[j], [1, stride, stride, 1], "SAME")
                nodes.append(y.op)
            tf.group(*nodes, name="done")
            sizes = [batch, side, depth, size, filters, stride]
            self.save(name, graph, targets=["done"], raw=[kind, *map(str, sizes)], calls=count,
                      inputs=inputs)

    # --- models ------------------------------------------------------------------------------

    def batch(self):
        """The first images of Fashion-MNIST, or noise where the data set is not installed."""
        try:
            with gzip.open(FASHION_MNIST + "train-images-idx3-ubyte.gz") as file:
                images = np.frombuffer(file.read(16 + BATCH * 784)[16:], np.uint8)
            with gzip.open(FASHION_MNIST + "train-labels-idx1-ubyte.gz") as file:
                labels = np.frombuffer(file.read(8 + BATCH)[8:], np.uint8)
        except OSError:
            images = self.random.integers(0, 256, BATCH * 784)
            labels = self.random.integers(0, 10, BATCH)
        return {"images": (images.reshape(BATCH, 784) / 255).astype(np.float32),
                "labels": labels.astype(np.int32)}

    def model(self, name, build):
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(1)
            images = v1.placeholder(tf.float32, [None, 784], name="images")
            labels = v1.placeholder(tf.int32, [None], name="labels")
            build(images, labels)
            v1.variables_initializer(v1.global_variables(), name="init")
            self.save(name, graph, init=["init"], feeds=self.batch(), targets=["train"])


def while_loop(condition, body, variables):
    """A loop of primitive ops, as TensorFlow 1 writes it."""
    return v1.while_loop(condition, body, variables)


def variable(shape, value=None):
    initial = v1.truncated_normal(shape, stddev=0.1) if value is None else tf.constant(value, shape=shape)
    return v1.Variable(initial, use_resource=False)


def dense(x, inputs, units):
    return tf.nn.bias_add(tf.matmul(x, variable([inputs, units])), variable([units], 0.1))


def dropout(x):
    return tf.nn.dropout(x, rate=0.25)


def adam(loss):
    step = v1.Variable(0, trainable=False, use_resource=False)
    rate = 0.0001 + 0.0029 * tf.exp(tf.cast(step, tf.float32) / -2000.0)
    v1.train.AdamOptimizer(rate).minimize(loss, global_step=step, name="train")


def mean_loss(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def softmax(images, labels):
    weights, biases = variable([784, 10], 0.0), variable([10], 0.0)
    logits = tf.nn.bias_add(tf.matmul(images, weights), biases)
    loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    v1.train.GradientDescentOptimizer(0.003).minimize(loss, name="train")


def mlp(images, labels):
    x, inputs = images, 784
    for units in (200, 100, 60, 30):
        x, inputs = dropout(tf.nn.relu(dense(x, inputs, units))), units
    adam(mean_loss(dense(x, inputs, 10), labels))


def cnn(images, labels):
    x = tf.reshape(images, [-1, 28, 28, 1])
    for size, inputs, outputs, stride in ((6, 1, 6, 1), (5, 6, 12, 2), (4, 12, 24, 2)):
        y = tf.nn.conv2d(x, variable([size, size, inputs, outputs]), stride, "SAME")
        x = tf.nn.relu(tf.nn.bias_add(y, variable([outputs], 0.1)))
    x = dropout(tf.nn.relu(dense(tf.reshape(x, [-1, 7 * 7 * 24]), 7 * 7 * 24, 200)))
    adam(mean_loss(dense(x, 200, 10), labels))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    writer = Writer(folder)
    writer.chain("identity", lambda x: tf.raw_ops.Identity(input=x))
    writer.chain("neg", lambda x: tf.raw_ops.Neg(x=x))
    writer.layers()
    writer.no_ops()
    writer.null_run()
    writer.loop()
    writer.nested_loop()
    writer.product_loop()
    writer.conds()
    writer.calls()
    writer.lstm()
    writer.tables()
    writer.barrier()
    writer.queue()
    writer.staging()
    writer.queue_input()
    writer.parsing()
    writer.products("products", 256, 256, 256, 64, 64)
    for m, k, n in PRODUCTS:
        count = num_nodes(2.0 * m * k * n)
        writer.products(f"matmul_{m}x{k}x{n}", m, k, n, count, num_inputs(count, 4 * (m * k + k * n)))
    for batch, side, depth, size, filters, stride in CONVOLUTIONS:
        for kind in ("forward", "data", "filter"):
            if kind == "data" and depth == 1:
                continue  # Nobody wants the gradient of the pictures.
            name = f"conv_{kind}_{batch}x{side}x{side}x{depth}_{size}x{size}x{filters}_s{stride}"
            writer.convolutions(kind, name, batch, side, depth, size, filters, stride)
    writer.model("softmax", softmax)
    writer.model("mlp", mlp)
    writer.model("cnn", cnn)
    with open(f"{folder}/graphs.json", "w") as file:
        json.dump(writer.described, file, indent=1)


if __name__ == "__main__":
    main()
