#!/usr/bin/env python3
"""Writes the graphs of this folder with TensorFlow: while_v1, functions_v2, training_v1.

Only needed to make them anew; `troupe run` needs no Python. Made with TensorFlow 2.21.
"""
import os

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
v1 = tf.compat.v1


def write(graph_def, name):
    tf.io.write_graph(graph_def, HERE, name, as_text=True)


def while_v1():
    """A v1 loop: Newton's iteration for square roots, until all of x are exact enough."""
    v1.disable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float64, [None], name="x")

        def again(steps, root):
            error = tf.reduce_max(tf.abs(root * root - x) / x)
            return tf.logical_and(error > 1e-12, steps < 100)

        def better(steps, root):
            return steps + 1, 0.5 * (root + x / root)

        steps, root = v1.while_loop(again, better, [tf.constant(0), tf.identity(x)], name="newton")
        tf.identity(root, name="root")
        tf.identity(steps, name="steps")
    write(graph.as_graph_def(add_shapes=False), "while_v1.pbtxt")


def functions_v2():
    """Functions calling functions: a loop (While), a branch (If) and a call (PartitionedCall)."""
    v1.enable_control_flow_v2()

    @tf.function(autograph=False)
    def next_collatz(n):
        return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1)

    @tf.function(autograph=False)
    def collatz(n):
        """How many steps n takes to 1, and the largest number on the way."""

        def body(n, steps, largest):
            n = next_collatz(n)
            return n, steps + 1, tf.maximum(largest, n)

        _, steps, largest = tf.while_loop(
            lambda n, steps, largest: n > 1, body, [n, tf.constant(0, tf.int64), n])
        return steps, largest

    graph = tf.Graph()
    with graph.as_default():
        n = v1.placeholder(tf.int64, [], name="n")
        steps, largest = collatz(n)
        tf.identity(steps, name="steps")
        tf.identity(largest, name="largest")
    write(graph.as_graph_def(add_shapes=False), "functions_v2.pbtxt")


def training_v1():
    """Linear regression with what a v1 training script has: saver, summaries, global step."""
    v1.disable_control_flow_v2()
    v1.disable_resource_variables()
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None], name="x")
        y = v1.placeholder(tf.float32, [None], name="y")
        w = v1.get_variable("w", [], initializer=v1.zeros_initializer())
        b = v1.get_variable("b", [], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(w * x + b - y), name="loss")
        step = v1.train.get_or_create_global_step()
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, step, name="train")
        v1.summary.scalar("loss_summary", loss)
        v1.summary.histogram("x_summary", x)
        v1.summary.merge_all(name="summaries")
        v1.global_variables_initializer()
        v1.train.Saver(sharded=True)
    write(graph.as_graph_def(add_shapes=False), "training_v1.pbtxt")


while_v1()
functions_v2()
training_v1()
