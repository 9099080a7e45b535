"""Writes the graphs of the rows of scripts/bench-peers about clusters, as graphs.py writes the others.

    cluster_graphs.py FOLDER

Besides what graphs.json says elsewhere: "chief" is a node that the first worker runs beside its steps.
"""

import json
import os
import sys

from graphs import Writer, cnn, tf, v1

WORKERS = (1, 2, 4, 8)
SIZES = {"1KB": 1 << 10, "64KB": 64 << 10, "1MB": 1 << 20, "64MB": 64 << 20}
PS, DEVICE_CHAIN = "/job:ps/task:0", 1000


def worker(task):
    return f"/job:worker/task:{task}"


def read_add(writer, task):
    """Reads a scalar of the parameter server, and adds to it what is computed from that here."""
    with tf.Graph().as_default() as graph:
        with v1.device(PS):
            v = v1.Variable(0.0)
        with v1.device(worker(task)):
            delta = tf.subtract(1.0, tf.raw_ops.Identity(input=v))
        with v1.device(PS):
            v1.assign_add(v, delta, name="step")
        writer.save(f"read_add_{task}", graph, init=[v.initializer.name] if task == 0 else [], targets=["step"])


def synchronous(writer, workers, task):
    """A step of SyncReplicasOptimizer that trains a scalar.

    Steps are counted from 2^40, and the accumulators are not told so: no gradient is ever stale, so that none is made for nothing.
    """
    with tf.Graph().as_default() as graph:
        with v1.device(v1.train.replica_device_setter(ps_tasks=1, worker_device=worker(task))):
            step = v1.Variable(1 << 40, dtype=tf.int64, trainable=False)
            v = v1.Variable(0.0)
            gradient = tf.subtract(tf.raw_ops.Identity(input=v), 1.0)
            optimizer = v1.train.SyncReplicasOptimizer(v1.train.GradientDescentOptimizer(0.1), workers)
            train = optimizer.apply_gradients([(gradient, v)], global_step=step)
            runner = optimizer.get_chief_queue_runner()
            tokens = optimizer.get_init_tokens_op()
            init = v1.variables_initializer([step, v], name="init")
        first = [init.name, tokens.name] if task == 0 else []
        writer.save(f"sync_{workers}_{task}", graph, init=[*first, optimizer.local_step_init_op.op.name],
                    targets=[train.op.name], **({"chief": runner.enqueue_ops[0].name} if task == 0 else {}))


def touch(writer, workers):
    with tf.Graph().as_default() as graph:
        init, targets = [], []
        for task in range(workers):
            with v1.device(worker(task)):
                v = v1.Variable(0.0)
                init.append(v.initializer.name)
                targets.append(v1.assign_add(v, 1.0).op.name)
        writer.save(f"touch_{workers}", graph, init=init, targets=targets)


def move(writer, name, size):
    """A variable of the parameter server, of which the worker looks at the first element."""
    with tf.Graph().as_default() as graph:
        with v1.device(PS):
            v = v1.Variable(tf.fill([size // 4], 1.0))
        with v1.device(worker(0)):
            first = tf.raw_ops.Slice(input=v, begin=[0], size=[1])
        writer.save(f"move_{name}", graph, init=[v.initializer.name], targets=[first.op.name])


def devices(writer):
    """A scalar goes from one CPU device to the other, a node at each stop."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [], name="x")
        for i in range(DEVICE_CHAIN + 1):
            with v1.device(f"/cpu:{i % 2}"):
                x = tf.raw_ops.Neg(x=x)
        writer.save("devices", graph, feeds={"x": writer.random.random((), "float32")}, targets=[x.op.name],
                    transfers=DEVICE_CHAIN)


def network(writer, task):
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(1)
        with v1.device(v1.train.replica_device_setter(ps_tasks=1, worker_device=worker(task))):
            images = v1.placeholder(tf.float32, [None, 784], name="images")
            labels = v1.placeholder(tf.int32, [None], name="labels")
            cnn(images, labels)
            v1.variables_initializer(v1.global_variables(), name="init")
        feeds = writer.batch()
        writer.save(f"cnn_{task}", graph, init=["init"] if task == 0 else [], feeds=feeds, targets=["train"],
                    images=len(feeds["images"]))


def main():
    v1.disable_resource_variables()
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    writer = Writer(folder)
    for task in range(max(WORKERS)):
        read_add(writer, task)
    for workers in WORKERS:
        for task in range(workers):
            synchronous(writer, workers, task)
    for workers in WORKERS[1:]:
        touch(writer, workers)
    for name, size in SIZES.items():
        move(writer, name, size)
    devices(writer)
    for task in range(2):
        network(writer, task)
    with open(f"{folder}/graphs.json", "w") as file:
        json.dump(writer.described, file, indent=1)


main()
