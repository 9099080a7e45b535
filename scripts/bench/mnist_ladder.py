#!/usr/bin/env python3
"""The rungs of examples/mnist_ladder.cc in TensorFlow: the same networks, initial distributions, rates and batches.

    mnist_ladder.py [--rung NAME|all] [--data DIR] [--steps N] [--batch N] [--seed N]

prints a line `NAME AA.AA %` a rung: the share of test images that the trained network takes for what they are.
"""

import argparse
import gzip
import math
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_control_flow_v2()

SIDE, CLASSES = 28, 10
MOMENTUM, EPSILON = 0.99, 1e-3  # Of batch normalization.
UNITS = (200, 100, 60, 30)
SMALL = ((4, 5, 1), (8, 5, 2), (12, 4, 2))  # Filters, size, stride.
BIG = ((6, 6, 1), (12, 5, 2), (24, 4, 2))

RUNGS = {
    "softmax": {"units": ()},
    "sigmoid": {"units": UNITS, "activation": tf.sigmoid},
    "relu": {"units": UNITS},
    "decay": {"units": UNITS, "decay": True},
    "dropout": {"units": UNITS, "decay": True, "dropout": 0.25},
    "cnn": {"convolutions": SMALL, "decay": True},
    "bigger_cnn": {"convolutions": BIG, "decay": True, "dropout": 0.25},
    "batch_norm": {"convolutions": BIG, "decay": True, "dropout": 0.25, "batch_norm": True},
}


class Data:
    def __init__(self, folder, part):
        self.images = self.read(folder, f"{part}-images-idx3-ubyte", 16).reshape(-1, SIDE, SIDE, 1)
        self.labels = self.read(folder, f"{part}-labels-idx1-ubyte", 8).astype(np.int32)

    @staticmethod
    def read(folder, name, header):
        path = os.path.join(folder, name)
        with open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz", "rb") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    def batches(self, size, seed):
        """A fresh shuffle every epoch."""
        random = np.random.default_rng(seed)
        while True:
            order = random.permutation(len(self.labels))
            for begin in range(0, len(order) - size + 1, size):
                yield self.part(order[begin : begin + size])

    def part(self, indices):
        return self.images[indices].astype(np.float32) / 255, self.labels[indices]


class Network:
    def __init__(self, convolutions=(), units=(200,), activation=tf.nn.relu, decay=False, dropout=0.0,
                 batch_norm=False, steps=10000):
        self.activation, self.batch_norm, self.updates = activation, batch_norm, []
        self.images = v1.placeholder(tf.float32, [None, SIDE, SIDE, 1])
        self.labels = v1.placeholder(tf.int32, [None])
        self.training = v1.placeholder(tf.bool, [])
        x = self.images
        for filters, size, stride in convolutions:
            kernel = self.weights([size, size, x.shape[3], filters])
            x = self.finish(tf.nn.conv2d(x, kernel, stride, "SAME"))
        x = tf.reshape(x, [-1, math.prod(x.shape[1:])])
        for count in units:
            x = self.finish(tf.matmul(x, self.weights([x.shape[1], count])))
            x = tf.nn.dropout(x, tf.where(self.training, dropout, 0.0)) if dropout else x
        is_softmax = not units
        kernel = self.variable(tf.zeros([x.shape[1], CLASSES])) if is_softmax else self.weights([x.shape[1], CLASSES])
        logits = tf.nn.bias_add(tf.matmul(x, kernel), self.variable(tf.zeros([CLASSES])))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(self.labels, logits)
        step = v1.train.get_or_create_global_step()
        rate = 0.003
        if decay:
            rate = 0.0001 + v1.train.exponential_decay(0.003, step, steps // 5, 1 / math.e)
        with tf.control_dependencies(self.updates):
            if is_softmax:
                self.train = v1.train.GradientDescentOptimizer(rate).minimize(tf.reduce_sum(losses), step)
            else:
                self.train = v1.train.AdamOptimizer(rate).minimize(tf.reduce_mean(losses), step)
        right = tf.equal(tf.argmax(logits, 1, tf.int32), self.labels)
        self.right = tf.reduce_sum(tf.cast(right, tf.int32))

    @staticmethod
    def variable(initial, trainable=True):
        return v1.Variable(initial, trainable=trainable, use_resource=True)

    def weights(self, shape):
        return self.variable(tf.random.truncated_normal(shape, stddev=0.1))

    def finish(self, x):
        """Biases or batch normalization, and the activation."""
        channels = x.shape[-1]
        if not self.batch_norm:
            bias = 0.1 if self.activation is tf.nn.relu else 0.0
            return self.activation(tf.nn.bias_add(x, self.variable(tf.fill([channels], bias))))
        gamma, beta = self.variable(tf.ones([channels])), self.variable(tf.zeros([channels]))
        mean, variance = self.variable(tf.zeros([channels]), False), self.variable(tf.ones([channels]), False)
        rows = tf.reshape(x, [-1, 1, 1, channels])
        y, batch_mean, batch_variance = v1.cond(
            self.training,
            lambda: v1.nn.fused_batch_norm(rows, gamma, beta, epsilon=EPSILON),
            lambda: v1.nn.fused_batch_norm(rows, gamma, beta, mean, variance, epsilon=EPSILON, is_training=False))
        for moving, batch in ((mean, batch_mean), (variance, batch_variance)):
            self.updates.append(moving.assign_sub((moving - batch) * (1 - MOMENTUM)).op)
        return self.activation(tf.reshape(y, tf.shape(x)) if x.shape.rank == 2 else
                               tf.reshape(y, [-1, *x.shape[1:]]))


def accuracy(rung, training, test, arguments):
    with tf.Graph().as_default():
        v1.set_random_seed(arguments.seed)
        network = Network(**RUNGS[rung], steps=arguments.steps)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            feeds = [network.images, network.labels, network.training]
            step = session.make_callable(network.train, feeds)
            batches = training.batches(arguments.batch, arguments.seed)
            for _ in range(arguments.steps):
                step(*next(batches), True)
            count = len(test.labels)
            right = session.make_callable(network.right, feeds)
            found = sum(right(*test.part(slice(begin, begin + 1000)), False) for begin in range(0, count, 1000))
            return 100 * found / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rung", default="all", choices=[*RUNGS, "all"])
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    training, test = Data(arguments.data, "train"), Data(arguments.data, "t10k")
    for rung in RUNGS if arguments.rung == "all" else [arguments.rung]:
        start = time.monotonic()
        print(f"{rung:12} {accuracy(rung, training, test, arguments):5.2f} %", flush=True)
        print(f"  {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
