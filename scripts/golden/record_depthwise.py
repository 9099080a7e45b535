#!/usr/bin/env python3
"""scripts/golden/record_depthwise.py OUT.pb.gz

tests/golden/depthwise.pb.gz: DepthwiseConv2dNative with dilations and its gradients. TensorFlow's kernels for the CPU take no
dilations; what is recorded is what tf.nn.depthwise_conv2d gives, which moves pixels to the batch and back.
"""

import argparse
import sys

from recorder import bytes_of, golden, np, record, tf, v1, write

TYPES = {tf.float32: (1e-4, 1e-5), tf.float64: (1e-9, 1e-10), tf.float16: (4e-3, 1e-2), tf.bfloat16: (2e-2, 6e-2)}
# Images, sizes of the filter, outputs of a channel, dilations, padding.
SHAPES = [((2, 7, 9, 3), (3, 3), 1, (2, 2), "SAME"), ((1, 9, 8, 2), (3, 2), 2, (3, 4), "VALID"),
          ((2, 6, 8, 20), (2, 3), 1, (2, 1), "SAME"), ((1, 9, 11, 5), (3, 3), 3, (1, 3), "VALID"),
          ((1, 4, 5, 4), (3, 3), 1, (5, 6), "SAME")]


def case(name, dtype, image, size, outputs, dilations, padding):
    """The graph of what is tested, with the results of another."""
    numbers = np.random.default_rng(len(name) + sum(image))
    values = {"x": numbers.uniform(-1, 1, image), "filter": numbers.uniform(-1, 1, (*size, image[3], outputs))}
    feeds = [golden.NamedTensor(name=f"{n}:0", tensor=bytes_of(v.astype(dtype.as_numpy_dtype), dtype)) for n, v in values.items()]
    made = golden.Case(name=name, op="DepthwiseConv2dNative", rtol=TYPES[dtype][0], atol=TYPES[dtype][1], shape=[{"tensor": "y:0"}])
    made.step.add(feed=feeds, fetch=["y:0"])
    made.gradient.add(feed=feeds, x=["x:0", "filter:0"], y=["y:0"])

    def graph(convolve):
        with tf.Graph().as_default() as whole:
            convolve(*(v1.placeholder(dtype, v.shape, name=n) for n, v in values.items()))
        return whole

    def by_batch(x, f):
        return tf.identity(tf.nn.depthwise_conv2d(x, f, [1, 1, 1, 1], padding, dilations=dilations), name="y")

    def native(x, f):
        return tf.raw_ops.DepthwiseConv2dNative(input=x, filter=f, strides=[1, 1, 1, 1], padding=padding,
                                                dilations=[1, *dilations, 1], name="y")

    record(made, graph(by_batch))
    made.graph = graph(native).as_graph_def().SerializeToString(deterministic=True)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out")
    options = parser.parse_args()
    write(options.out, [case(f"{dtype.name}/{i}", dtype, *shape) for dtype in TYPES for i, shape in enumerate(SHAPES)])


if __name__ == "__main__":
    sys.exit(main())
