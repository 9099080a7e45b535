#!/usr/bin/env python3
"""scripts/golden/record_object_checkpoint.py [PREFIX]: a checkpoint of TensorFlow 2's objects.

By default tests/api/training/testdata/objects, with TensorFlow 2.21. Its variables have the names of a program's scopes; two
have the same one, and one is held by two objects.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "../../tests/api/training/testdata/objects")


class Layer(tf.Module):
    def __init__(self):
        with tf.name_scope("dense"):
            self.kernel = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="kernel")
            self.bias = tf.Variable([5.0, 6.0], name="bias")


layer = Layer()
twice = [tf.Variable(7, name="twice"), tf.Variable(8, name="twice")]
root = tf.train.Checkpoint(model=layer, again=layer, list=twice, step=tf.Variable(9, name="global_step", dtype=tf.int64))
root.write(sys.argv[1] if len(sys.argv) > 1 else OUT)
