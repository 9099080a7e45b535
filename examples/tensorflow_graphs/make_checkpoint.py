#!/usr/bin/env python3
"""Writes fashion_features.* with TensorFlow: the convolutions of a network that has learned from the first 50,000 pictures
of Fashion-MNIST. examples/fine_tune.cc begins with them.

Only needed to make them anew. Made with TensorFlow 2.21.
"""
import gzip
import os

import numpy as np
import tensorflow.compat.v1 as tf

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = "/usr/share/datasets/fashion-mnist/train-%s-ubyte.gz"

tf.disable_v2_behavior()
tf.set_random_seed(1)
with gzip.open(DATA % "images-idx3") as file:
    images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28, 1)
with gzip.open(DATA % "labels-idx1") as file:
    labels = np.frombuffer(file.read(), np.uint8, offset=8)
images, labels = images[:50000], labels[:50000]

x = tf.placeholder(tf.float32, [None, 28, 28, 1])
y = tf.placeholder(tf.int64, [None])


def convolution(name, x, size, outputs, stride):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [size, size, x.shape[-1], outputs], initializer=tf.truncated_normal_initializer(stddev=0.1))
        bias = tf.get_variable("bias", [outputs], initializer=tf.constant_initializer(0.1))
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME"), bias))


with tf.variable_scope("features"):
    h = convolution("conv2d", x, 6, 6, 1)
    h = convolution("conv2d_1", h, 5, 12, 2)
    h = convolution("conv2d_2", h, 4, 24, 2)
h = tf.reshape(h, [-1, 7 * 7 * 24])
weights = tf.get_variable("weights", [7 * 7 * 24, 10], initializer=tf.truncated_normal_initializer(stddev=0.1))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h @ weights))
train = tf.train.AdamOptimizer(0.001).minimize(loss)
saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "features"))
random = np.random.RandomState(1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(2000):
        batch = random.randint(0, len(labels), 100)
        _, value = session.run([train, loss], {x: images[batch] / 255.0, y: labels[batch]})
    print("loss", value)
    saver.save(session, os.path.join(HERE, "fashion_features"), write_meta_graph=False, write_state=False)
