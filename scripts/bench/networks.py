"""Writes networks for inference twice: as a GraphDef and as an ONNX model with the same random weights.

    networks.py FOLDER

leaves FOLDER/NAME.pb, NAME.onnx, NAME.x.npy (fed to `x`, NHWC) and graphs.json: per name {"feeds": {"x": file},
"fetches": ["y"], ...} as graphs.py. Batch normalization is folded into the convolutions' weights and biases on both
sides, as ONNX Runtime would do itself.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import onnx
import tensorflow as tf
from onnx import TensorProto, helper, numpy_helper

v1 = tf.compat.v1


class Network:
    """Builds both at once; a value is a pair of a tensor (NHWC) and an ONNX name (NCHW)."""

    def __init__(self, batch, side, depth):
        self.random = np.random.default_rng(1)
        self.nodes, self.weights = [], []
        self.x = self.random.uniform(-1, 1, (batch, side, side, depth)).astype(np.float32)
        self.input = v1.placeholder(tf.float32, self.x.shape, name="x"), "x"

    def weight(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, op, inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    @staticmethod
    def pads(side, size, stride):
        """SAME as TensorFlow means it: the odd pixel behind."""
        total = max((-(-side // stride) - 1) * stride + size - side, 0)
        return [total // 2, total // 2, total - total // 2, total - total // 2]

    def conv(self, x, size, filters, stride=1, relu=True):
        value, name = x
        side, depth = value.shape[1], value.shape[3]
        w = self.random.normal(0, (2 / (size * size * depth)) ** 0.5, (size, size, depth, filters)).astype(np.float32)
        b = self.random.normal(0, 0.1, filters).astype(np.float32)
        value = tf.nn.bias_add(tf.nn.conv2d(value, tf.constant(w), stride, "SAME"), tf.constant(b))
        name = self.node("Conv", [name, self.weight(w.transpose(3, 2, 0, 1)), self.weight(b)],
                         kernel_shape=[size, size], strides=[stride, stride],
                         pads=self.pads(side, size, stride))
        return self.relu((value, name)) if relu else (value, name)

    def relu(self, x):
        return tf.nn.relu(x[0]), self.node("Relu", [x[1]])

    def block(self, x, filters, stride):
        y = self.conv(self.conv(x, 3, filters, stride), 3, filters, relu=False)
        if stride != 1 or x[0].shape[3] != filters:
            x = self.conv(x, 1, filters, stride, relu=False)
        return self.relu((y[0] + x[0], self.node("Add", [y[1], x[1]])))

    def max_pool(self, x, size, stride):
        name = self.node("MaxPool", [x[1]], kernel_shape=[size, size], strides=[stride, stride],
                         pads=self.pads(x[0].shape[1], size, stride))
        return tf.nn.max_pool2d(x[0], size, stride, "SAME"), name

    def classes(self, x, count):
        depth = x[0].shape[3]
        w = self.random.normal(0, depth ** -0.5, (depth, count)).astype(np.float32)
        b = self.random.normal(0, 0.1, count).astype(np.float32)
        value = tf.nn.bias_add(tf.matmul(tf.reduce_mean(x[0], [1, 2]), tf.constant(w)), tf.constant(b))
        name = self.node("Flatten", [self.node("GlobalAveragePool", [x[1]])])
        return tf.identity(value, name="y"), self.node("Gemm", [name, self.weight(w), self.weight(b)])

    def onnx(self, y):
        batch, side, _, depth = self.x.shape
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, depth, side, side])],
            [helper.make_tensor_value_info(y[1], TensorProto.FLOAT, list(y[0].shape))], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def resnet20(batch):
    """He and others, "Deep Residual Learning", 2015, section 4.2, projections as shortcuts."""
    net = Network(batch, 32, 3)
    x = net.conv(net.input, 3, 16)
    for filters in (16, 32, 64):
        for block in range(3):
            x = net.block(x, filters, 2 if block == 0 and filters > 16 else 1)
    return net, net.classes(x, 10)


def resnet18(batch):
    """The same paper, table 1."""
    net = Network(batch, 224, 3)
    x = net.max_pool(net.conv(net.input, 7, 64, 2), 3, 2)
    for filters in (64, 128, 256, 512):
        for block in range(2):
            x = net.block(x, filters, 2 if block == 0 and filters > 64 else 1)
    return net, net.classes(x, 1000)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    described = {}
    for build in (resnet20, resnet18):
        for batch in (1, 32):
            name = f"{build.__name__}_{batch}"
            with tf.Graph().as_default() as graph:
                net, y = build(batch)
                with open(f"{folder}/{name}.pb", "wb") as file:
                    file.write(graph.as_graph_def().SerializeToString())
            onnx.save(net.onnx(y), f"{folder}/{name}.onnx")
            np.save(f"{folder}/{name}.x.npy", net.x)
            described[name] = {"init": [], "feeds": {"x": f"{name}.x.npy"}, "fetches": ["y"], "targets": []}
    with open(f"{folder}/graphs.json", "w") as file:
        json.dump(described, file, indent=1)


if __name__ == "__main__":
    main()
