#!/usr/bin/env python3
"""scripts/golden/record_flow_gradients.py [--first SEED] [--count N] OUT.pb.gz

Random programs of loops, branches and TensorArrays on 2x2 matrices, with the gradients that TensorFlow 2.21 gives for them.
tests/golden/flow_gradients.pb.gz holds what the default arguments give.
"""

import argparse
import random
import sys

from recorder import bytes_of, finite, golden, np, record, tf, v1, write

v1.disable_control_flow_v2()


class Program:
    """A loss of three matrices, drawn from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.inputs = [v1.placeholder(tf.float64, [2, 2], f"x{i}") for i in range(3)]
            value = self.block(self.inputs[0], depth=0, statements=self.random.randint(1, 3))
            tf.reduce_sum(value * value, name="loss")

    def block(self, value, depth, statements):
        for _ in range(statements):
            value = self.statement(value, depth)
        return value

    def statement(self, value, depth):
        kinds = [self.plain] if depth >= 3 else [self.plain, self.count, self.until, self.branch, self.fold]
        return self.random.choice(kinds)(value, depth)

    def plain(self, value, depth):
        other = self.random.choice(self.inputs)
        return self.random.choice([
            lambda: tf.sin(value), lambda: tf.tanh(value + other), lambda: value * other * 0.5,
            lambda: tf.matmul(value, other) * 0.5, lambda: tf.nn.softmax(value), lambda: tf.sigmoid(value) - other,
            lambda: tf.transpose(value) * tf.cos(other), lambda: value + 0.5 * tf.reduce_sum(value),
            lambda: tf.where(value > other, value, other * 0.5), lambda: tf.gather(value, [1, 0]) * 0.5 + other,
        ])()

    def count(self, value, depth):
        times, inner = self.random.randint(0, 4), self.random.randint(1, 2)
        return v1.while_loop(lambda i, x: i < times,
                             lambda i, x: (i + 1, self.block(x, depth + 1, inner)), (0, value))[1]

    def until(self, value, depth):
        """As often as the values say."""
        bound = self.random.uniform(1, 4)
        return v1.while_loop(lambda i, x: tf.logical_and(i < 4, tf.reduce_sum(tf.abs(x)) < bound),
                             lambda i, x: (i + 1, self.block(x, depth + 1, 1) * 1.5), (0, value))[1]

    def branch(self, value, depth):
        bound = self.random.uniform(-1, 1)
        return v1.cond(tf.reduce_sum(value) > bound,
                       lambda: self.block(value, depth + 1, 1), lambda: self.block(value, depth + 1, 1))

    def fold(self, value, depth):
        """A loop that writes an array; what is read depends on all of it."""
        times = self.random.randint(1, 3)
        array = tf.TensorArray(tf.float64, size=times, element_shape=[2, 2])
        _, last, array = v1.while_loop(
            lambda i, x, a: i < times,
            lambda i, x, a: (i + 1, self.block(x, depth + 1, 1), a.write(i, x)), (0, value, array))
        return last + tf.reduce_mean(array.stack(), 0)

    def case(self, name):
        case = golden.Case(name=name, graph=self.graph.as_graph_def().SerializeToString(deterministic=True),
                           rtol=1e-8, atol=1e-9, tag=["control_flow"])
        for _ in range(2):
            feed = [golden.NamedTensor(name=f"x{i}:0", tensor=bytes_of(
                np.array([[self.random.uniform(-1, 1) for _ in range(2)] for _ in range(2)]))) for i in range(3)]
            case.step.add(feed=feed, fetch=["loss:0"])
            case.gradient.add(y=["loss:0"], x=["x0:0", "x1:0", "x2:0"], feed=feed)
        return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("out")
    options = parser.parse_args()
    cases, seed = [], options.first
    while len(cases) < options.count:
        program = Program(seed)
        case = record(program.case(f"random_{seed}"), program.graph)
        # A loss that explodes compares nothing.
        if finite(case) and not any(step.error for step in case.step):
            cases.append(case)
        seed += 1
    write(options.out, cases)


if __name__ == "__main__":
    sys.exit(main())
