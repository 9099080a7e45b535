#!/usr/bin/env python3
"""Writes the two graphs of this folder with TensorFlow: while_v1.pbtxt, functions_v2.pbtxt.

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


while_v1()
functions_v2()
