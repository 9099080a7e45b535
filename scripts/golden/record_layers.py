#!/usr/bin/env python3
"""scripts/golden/record_layers.py [FILE]

Writes tests/api/layers/testdata/recorded.txt: what TensorFlow 2.21 gives for layers, recurrent networks, losses,
metrics and initializers, a line "NAME|SIZES|VALUES" a tensor. Inputs are waves and weights are cosines, as
tests/api/layers/recorded.h makes them. What TensorFlow 2.21 no longer has (locally connected layers, beam search, covariance) is computed by NumPy,
as its definition says, and attention by TensorFlow's ops, for the gradients.
"""

import os
import sys

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import init_ops

VERSION = "2.21"
if not tf.__version__.startswith(VERSION):
    sys.exit(f"The recorded numbers are TensorFlow {VERSION}'s; this is {tf.__version__}.")
v1 = tf.compat.v1
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILE = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/api/layers/testdata/recorded.txt")
lines = []


def record(name, value):
    value = np.asarray(value)
    sizes = " ".join(str(size) for size in value.shape)
    lines.append(f"{name}|{sizes}|" + " ".join(f"{float(x):.8g}" for x in value.ravel()))


def wave(*sizes, frequency=0.37):
    return np.sin(np.arange(np.prod(sizes)) * frequency + 0.5).astype(np.float32).reshape(sizes)


def cosine(*sizes):
    return (np.cos(np.arange(np.prod(sizes)) * 0.7) * 0.5).astype(np.float32).reshape(sizes)


def with_gradients(name, function, x, *weights):
    """The result, and the gradients of its sum weighted by a wave."""
    variables = [tf.constant(v) for v in (x, *weights)]
    with tf.GradientTape() as tape:
        tape.watch(variables)
        y = function(*variables)
        loss = tf.reduce_sum(y * wave(*y.shape, frequency=0.3))
    record(name, y)
    for i, gradient in enumerate(tape.gradient(loss, variables)):
        record(f"{name}/gradient_{i}", gradient)


# Convolutions and pooling.
volume = wave(2, 4, 5, 3, 2)
image = wave(2, 5, 6, 3)
line = wave(2, 6, 3)
five = lambda a, b, c: [1, a, b, c, 1]
with_gradients("conv3d", lambda x, w, b: tf.nn.conv3d(x, w, five(2, 1, 1), "SAME") + b, volume,
               cosine(2, 3, 2, 2, 4), np.full(4, 0.1, np.float32))
with_gradients("conv3d/dilated", lambda x, w: tf.keras.ops.conv(x, w, 1, "valid", dilation_rate=(1, 2, 1)),
               volume, cosine(2, 2, 2, 2, 4))
with_gradients("conv3d_transpose/same",
               lambda x, w: tf.nn.conv3d_transpose(x, w, [2, 8, 5, 6, 3], five(2, 1, 2), "SAME"), volume,
               cosine(3, 2, 2, 3, 2))
with_gradients("conv3d_transpose/valid",
               lambda x, w: tf.nn.conv3d_transpose(x, w, [2, 9, 6, 6, 3], five(2, 1, 2), "VALID"), volume,
               cosine(3, 2, 2, 3, 2))
with_gradients("depthwise", lambda x, w, b: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME") + b, image,
               cosine(3, 2, 3, 2), np.full(6, 0.1, np.float32))
with_gradients("depthwise/dilated",
               lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID", dilations=[2, 1]), image,
               cosine(2, 2, 3, 2))
with_gradients("depthwise/dilated_same",
               lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", dilations=[2, 3]), image,
               cosine(2, 2, 3, 2))
with_gradients("separable2d",
               lambda x, d, p, b: tf.nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "SAME") + b, image,
               cosine(3, 2, 3, 2), cosine(1, 1, 6, 4), np.full(4, 0.1, np.float32))
with_gradients("separable1d",
               lambda x, d, p: tf.keras.ops.separable_conv(x, d, p, strides=2, padding="same"), line,
               cosine(3, 3, 2), cosine(1, 6, 4))
with_gradients("separable1d/dilated",
               lambda x, d, p: tf.keras.ops.separable_conv(x, d, p, padding="same", dilation_rate=2), line,
               cosine(3, 3, 2), cosine(1, 6, 4))
with_gradients("max_pool3d", lambda x: tf.nn.max_pool3d(x, [2, 2, 2], [2, 1, 1], "VALID"), volume)
with_gradients("average_pool3d", lambda x: tf.nn.avg_pool3d(x, [2, 3, 2], [2, 2, 1], "SAME"), volume)
with_gradients("global_max", lambda x: tf.keras.layers.GlobalMaxPooling3D()(x), volume)
with_gradients("time_distributed",
               lambda x, w: tf.reshape(tf.keras.ops.conv(tf.reshape(x, [6, 5, 4, 2]), w, 1, "valid"), [2, 3, 4, 3, 3]),
               wave(2, 3, 5, 4, 2), cosine(2, 2, 2, 3))


def locally_connected(x, kernel, bias, size, stride):
    """x [batch, rows, columns, channels] by the definition."""
    positions = [(n - k) // s + 1 for n, k, s in zip(x.shape[1:3], size, stride)]
    y = np.zeros((x.shape[0], *positions, kernel.shape[-1]))
    for row in range(positions[0]):
        for column in range(positions[1]):
            top, left = row * stride[0], column * stride[1]
            window = x[:, top:top + size[0], left:left + size[1]].reshape(x.shape[0], -1)
            y[:, row, column] = window @ kernel[row * positions[1] + column] + bias[row, column]
    return y


record("locally_connected2d", locally_connected(image, cosine(10, 18, 2), cosine(2, 5, 2), (3, 2), (2, 1)))
record("locally_connected1d",
       locally_connected(line[:, None], cosine(4, 9, 2), cosine(1, 4, 2), (1, 3), (1, 1))[:, 0])


# Recurrent networks: TensorFlow's loops around a cell of NumPy's numbers.
class Cell:
    def __init__(self, depth, units):
        self.units, self.kernel = units, tf.Variable(cosine(depth + units, units))
        self.output_size = self.state_size = units

    def zero_state(self, batch, dtype):
        return tf.zeros([batch, self.units], dtype)

    get_initial_state = lambda self, inputs=None, batch_size=None, dtype=None: self.zero_state(batch_size, dtype)

    def __call__(self, x, state, scope=None):
        h = tf.tanh(tf.concat([x, state], 1) @ self.kernel + 0.1)
        return h, h


def recurrent():
    x = tf.constant(wave(2, 4, 3))
    lengths = tf.constant([4, 2])
    for name, given in [("all", None), ("some", lengths)]:
        with tf.GradientTape() as tape:
            cells = [Cell(3, 5), Cell(3, 4)]
            tape.watch(x)
            outputs, states = v1.nn.bidirectional_dynamic_rnn(*cells, x, given, dtype=tf.float32)
            y = tf.concat(outputs, 2)
            loss = tf.reduce_sum(y * wave(2, 4, 9, frequency=0.3))
        record(f"bidirectional/{name}", y)
        record(f"bidirectional/{name}/forward", states[0])
        record(f"bidirectional/{name}/backward", states[1])
        for i, gradient in enumerate(tape.gradient(loss, [x] + [cell.kernel for cell in cells])):
            record(f"bidirectional/{name}/gradient_{i}", gradient)
    layer = x
    for cells in [(Cell(3, 5), Cell(3, 4)), (Cell(9, 2), Cell(9, 3))]:
        outputs, states = v1.nn.bidirectional_dynamic_rnn(*cells, layer, lengths, dtype=tf.float32)
        layer = tf.concat(outputs, 2)
    record("stacked_bidirectional", layer)
    outputs, state = v1.nn.static_rnn(Cell(3, 5), tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=lengths)
    record("static", tf.stack(outputs, 1))
    record("static/state", state)

    # Each step reads its input plus half of what the step before gave.
    cell, steps = Cell(3, 3), tf.transpose(x, [1, 0, 2])

    def function(time, output, state, loop_state):
        if output is None:
            state, loop_state, emit, back = cell.zero_state(2, tf.float32), tf.zeros([2]), tf.zeros([3]), 0.0
        else:
            loop_state, emit, back = loop_state + tf.reduce_sum(output, 1), output * 2, output * 0.5
        return time >= lengths, tf.gather(steps, tf.minimum(time, 3)) + back, state, emit, loop_state

    with tf.GradientTape() as tape:
        tape.watch(x)
        steps = tf.transpose(x, [1, 0, 2])
        emitted, state, loop_state = v1.nn.raw_rnn(cell, function)
        y = emitted.stack()
        loss = tf.reduce_sum(y * wave(*y.shape, frequency=0.3))
    record("raw", y)
    record("raw/state", state)
    record("raw/loop_state", loop_state)
    for i, gradient in enumerate(tape.gradient(loss, [x, cell.kernel])):
        record(f"raw/gradient_{i}", gradient)


recurrent()


# A cell with attention, by definition.
def attention(lengths, scale, size, luong):
    def run(x, memory, keys_kernel, cell_kernel, bias, *weights):
        weights = list(weights)
        there = tf.sequence_mask(lengths, 5) if lengths else tf.ones([2, 5], tf.bool)
        values = tf.where(there[:, :, None], memory, 0.0)
        keys = values @ keys_kernel
        query_kernel, v = (None, None) if luong else (weights.pop(0), weights.pop(0))
        g = weights.pop(0) if scale else 1.0
        b = weights.pop(0) if scale and not luong else 0.0
        if v is not None and scale:
            v = g * v / tf.norm(v)
        h, attended, outputs = tf.zeros([2, 4]), tf.zeros([2, size or 3]), []
        for t in range(4):
            h = tf.tanh(tf.concat([x[:, t], attended, h], 1) @ cell_kernel + bias)
            if luong:
                scores = g * tf.einsum("bu,btu->bt", h, keys)
            else:
                scores = tf.reduce_sum(v * tf.tanh(keys + (h @ query_kernel)[:, None] + b), 2)
            p = tf.nn.softmax(tf.where(there, scores, -np.inf))
            attended = tf.reduce_sum(p[:, :, None] * values, 1)
            if size:
                attended = tf.concat([h, attended], 1) @ weights[0]
            outputs.append(attended)
        return tf.stack(outputs, 1)

    units = 4 if luong else 6
    weights = [] if luong else [cosine(4, 6), cosine(6)]
    weights += [cosine().reshape([])] * scale + [cosine(6)] * (scale and not luong) + [cosine(4 + 3, size)] * bool(size)
    name = ("luong" if luong else "bahdanau") + ("/scaled" if scale else "") + ("/all" if not lengths else "")
    with_gradients(f"attention/{name}", run, wave(2, 4, 3), wave(2, 5, 3, frequency=0.9), cosine(3, units),
                   cosine(3 + (size or 3) + 4, 4), np.full(4, 0.1, np.float32), *weights)


for luong in (False, True):
    attention([5, 3], False, 5, luong)
    attention([5, 3], True, 5, luong)
    attention(None, False, 0, luong)


# Decoders, by definition.
def embed(token):
    return wave(7, 3)[token]


def step(x, h):
    h = np.tanh(np.concatenate([x, h]) @ cosine(7, 4) + 0.1)
    return h, h @ cosine(4, 7) * 6


def log_softmax(x):
    x = x.astype(np.float64)
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


def beam_search(start, state, width, penalty, limit, bias, end=2):
    """Tokens, score, log P and length of the beams, best first. `bias` is added to the end token's logit."""
    score = lambda log_p, length: log_p / ((5.0 + length) / 6.0)**penalty
    beams, scores = [([], start, state, 0.0, 0, False)], []  # Tokens, last one, state, log P, length, finished.
    for _ in range(limit):
        if all(beam[5] for beam in beams):
            break
        candidates = []
        for tokens, last, h, log_p, length, finished in beams:
            if finished:
                candidates.append((score(log_p, length), (tokens + [end], end, h, log_p, length, True)))
                continue
            h, logits = step(embed(last), h)
            logits[end] += bias
            for token, p in enumerate(log_softmax(logits)):
                ended = token == end
                candidates.append((score(log_p + p, length + (not ended)),
                                   (tokens + [token], token, h, log_p + p, length + 1, ended)))
        candidates.sort(key=lambda c: -c[0])
        scores, beams = zip(*candidates[:width])
    return [beam[0] for beam in beams], scores, [beam[3] for beam in beams], [beam[4] for beam in beams]


def decode():
    starts, states = [1, 4], wave(2, 4, frequency=0.9)
    for name, width, penalty, limit, bias in [("beam", 4, 0.0, 8, 0), ("beam/penalty", 4, 1.5, 8, 0),
                                              ("beam/short", 8, 0.5, 2, 0), ("beam/ends", 3, 0.5, 100, 4)]:
        found = [beam_search(start, state, width, penalty, limit, bias) for start, state in zip(starts, states)]
        longest = max(len(beam) for row in found for beam in row[0])
        tokens = [[beam + [2] * (longest - len(beam)) for beam in row[0]] for row in found]
        record(f"{name}/tokens", np.transpose(tokens, (0, 2, 1)))
        record(f"{name}/scores", [row[1] for row in found])
        record(f"{name}/log_p", [row[2] for row in found])
        record(f"{name}/lengths", [row[3] for row in found])
    outputs, samples = np.zeros((2, 5, 7)), np.zeros((2, 5))
    for row in range(2):
        token, h = starts[row], states[row]
        for time in range(5):
            h, outputs[row, time] = step(embed(token), h)
            token = samples[row, time] = int(outputs[row, time].argmax())
            if token == 2:
                break
    record("greedy/outputs", outputs)
    record("greedy/samples", samples)


decode()


# Losses, with the gradient of the reduced loss by predictions. Labels and predictions are those of the test: zeros and
# kinks are among them.
def losses():
    l = v1.losses
    truth = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]], np.float32)
    guess = np.array([[.9, .2, .6, .3], [.8, .4, .5, .7], [.1, .55, .25, .35]], np.float32)
    # 0, both of its sides, and far from it.
    logits = np.array([[0, 1e-3, -1e-3, 2], [0, -3, 30, -30], [.5, -0.0, 0, -90]], np.float32)
    # Among the errors 0 and +-.75, where Huber's losses have their kink; margins of 1 for the hinge.
    edges = np.array([[1, .75, .25, -.75], [0, 1.75, -1, 2], [.5, 3, 1, -1]], np.float32)
    weights = np.array([[1, 0, 2, .5], [.5, 1, 0, 1], [1, 3, 1, 0]], np.float32)
    rows = np.array([[1], [.5], [2]], np.float32)
    classes = np.array([[2, 0, 1], [1, 1, 3]], np.int64)
    deep = wave(2, 3, 4) * 3
    soft = tf.nn.softmax(cosine(2, 3, 4)).numpy()
    per = np.array([[1, 0, 2], [.5, 1, 3]], np.float32)

    def each(name, function, predictions, labels, *weighted):
        for kind, weight in [("", 1.0), *weighted]:
            with tf.Graph().as_default(), v1.Session() as session:
                x, y = tf.constant(predictions), tf.constant(labels)
                loss = function(y, x, weight)
                record(f"losses/{name}{kind}", session.run(loss))
                record(f"losses/{name}{kind}/gradient", session.run(v1.gradients(loss, x)[0]))

    both = [("/weighted", weights), ("/rows", rows)]
    each("absolute", lambda y, x, w: l.absolute_difference(y, x, w), edges, truth, *both)
    each("squared", lambda y, x, w: l.mean_squared_error(y, x, w), guess, truth, *both)
    each("huber", lambda y, x, w: l.huber_loss(y, x, w, delta=.75), edges, truth, *both)
    each("log", lambda y, x, w: l.log_loss(y, x, w, epsilon=1e-6), guess, truth, *both)
    each("cosine", lambda y, x, w: l.cosine_distance(y, x, axis=1, weights=w), guess, truth, ("/rows", rows))
    each("hinge", lambda y, x, w: l.hinge_loss(y, x, w), edges, truth, *both)
    each("pairwise", lambda y, x, w: l.mean_pairwise_squared_error(y, x, w), guess, truth, *both)
    each("sigmoid", lambda y, x, w: l.sigmoid_cross_entropy(y, x, w), logits, truth, *both)
    each("sigmoid/smooth", lambda y, x, w: l.sigmoid_cross_entropy(y, x, w, .1), logits, truth, *both)
    each("softmax", lambda y, x, w: l.softmax_cross_entropy(y, x, w), deep, soft, ("/weighted", per))
    each("softmax/smooth", lambda y, x, w: l.softmax_cross_entropy(y, x, w, .2), deep, soft, ("/weighted", per))
    each("softmax/vector", lambda y, x, w: l.softmax_cross_entropy(y, x, w), deep[0, 0], soft[0, 0])
    each("softmax/matrix", lambda y, x, w: l.softmax_cross_entropy(y, x, w, .2), deep[0], soft[0],
         ("/weighted", per[0]))
    each("sparse", lambda y, x, w: l.sparse_softmax_cross_entropy(y, x, w), deep, classes, ("/weighted", per))
    each("sparse/column", lambda y, x, w: l.sparse_softmax_cross_entropy(y, x, w), deep[0], classes[0][:, None],
         ("/weighted", per[0][:, None]))
    each("sparse/vector", lambda y, x, w: l.sparse_softmax_cross_entropy(y, x, w), deep[0, 0], classes[0, 0])


losses()


# Metrics, after each of two batches.
def metrics():
    m = v1.metrics
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        labels = v1.placeholder(tf.int64, [None, 2])
        scores = v1.placeholder(tf.float32, [None, 5])
        weights = v1.placeholder(tf.float32, [None])
        best = tf.math.top_k(scores, 3).indices
        one = labels[:, 0]
        valid = tf.where(labels >= 0)
        sparse = tf.SparseTensor(valid, tf.gather_nd(labels, valid), [4, 2])
        truth = v1.placeholder(tf.float32, [None])
        guess = v1.placeholder(tf.float32, [None])
        limits = [0.2, 0.5, 0.65]
        rows = v1.placeholder(tf.float32, [None, 3])
        unit = tf.math.l2_normalize(rows, 1)
        other = tf.math.l2_normalize(tf.roll(rows, 1, 1), 1)
        each = {
            "recall_at_2": m.recall_at_k(labels, scores, 2),
            "recall_at_2/weighted": m.recall_at_k(labels, scores, 2, weights=weights),
            "recall_at_3/class": m.recall_at_k(labels, scores, 3, class_id=2),
            "recall_at_1/one": m.recall_at_k(one, scores, 1),
            "recall_at_2/sparse": m.recall_at_k(sparse, scores, 2, weights=weights),
            "recall_at_2/sparse_class": m.recall_at_k(sparse, scores, 2, class_id=1),
            "recall_at_top_k": m.recall_at_top_k(labels, best),
            "precision_at_2": m.precision_at_k(labels, scores, 2),
            "precision_at_2/weighted": m.precision_at_k(labels, scores, 2, weights=weights),
            "precision_at_3/class": m.precision_at_k(labels, scores, 3, class_id=2, weights=weights),
            "precision_at_3/sparse": m.precision_at_k(sparse, scores, 3),
            "precision_at_top_k": m.precision_at_top_k(labels, best),
            "average_precision_at_3": m.average_precision_at_k(tf.abs(labels), scores, 3),
            "average_precision_at_3/weighted": m.average_precision_at_k(tf.abs(labels), scores, 3, weights),
            "average_precision_at_4/sparse": m.average_precision_at_k(sparse, scores, 4),
            "true_positives_at_thresholds": m.true_positives_at_thresholds(truth, guess, limits, weights),
            "true_negatives_at_thresholds": m.true_negatives_at_thresholds(truth, guess, limits, weights),
            "false_positives_at_thresholds": m.false_positives_at_thresholds(truth, guess, limits, weights),
            "false_negatives_at_thresholds": m.false_negatives_at_thresholds(truth, guess, limits),
            **{f"auc_{curve}/{method}{kind}": m.auc(truth, guess, weight, 5, curve=curve, summation_method=method)
               for curve in ("ROC", "PR") for method in ("trapezoidal", "careful_interpolation", "minoring", "majoring")
               for kind, weight in (("", None), ("/weighted", weights))},
            "auc_PR/default": m.auc(truth, guess, curve="PR"),
            "mean_cosine_distance": m.mean_cosine_distance(unit, other, 1),
            "mean_cosine_distance/weighted": m.mean_cosine_distance(unit, other, 1, weights[:, None]),
        }
        batches = [
            {labels: [[1, 2], [0, -1], [4, 1], [2, 2]], scores: wave(4, 5), weights: [1, .5, 2, 0], truth: [1, 0, 1, 1],
             guess: [.9, .8, .3, .6], rows: wave(4, 3)},
            {labels: [[3, -1], [1, 0], [2, 4], [-1, 2]], scores: wave(4, 5, frequency=1.3), weights: [0, 1, 1, .25],
             truth: [0, 0, 1, 0], guess: [.1, .4, .55, .7], rows: wave(4, 3, frequency=1.3)},
        ]
        session.run(v1.local_variables_initializer())
        results = [session.run({name: metric[1] for name, metric in each.items()}, batch) for batch in batches]
        for name in each:
            record(f"metrics/{name}", np.array([result[name] for result in results]))
    x = np.concatenate([wave(6), wave(5, frequency=1.3)]).astype(np.float64)
    y = np.concatenate([wave(6, frequency=0.8), wave(5, frequency=0.2)]).astype(np.float64)
    w = np.array([1, 2, 0, 1, 3, 1, 2, 0, 1, 1, 2])
    for name, f in [("plain", np.ones(11, int)), ("weighted", w)]:
        covariances = [np.cov(x[:n], y[:n], fweights=f[:n]) for n in (6, 11)]
        record(f"metrics/covariance/{name}", [c[0, 1] for c in covariances])
        record(f"metrics/pearson/{name}", [c[0, 1] / np.sqrt(c[0, 0] * c[1, 1]) for c in covariances])


metrics()


def initializers():
    i = v1.initializers
    with tf.Graph().as_default(), v1.Session() as session:
        for name, initializer, sizes in [
            ("glorot_normal", i.glorot_normal(7), [3, 2, 4]),
            ("he_normal", i.he_normal(7), [3, 2, 4]),
            ("he_uniform", i.he_uniform(7), [3, 2, 4]),
            ("lecun_normal", i.lecun_normal(7), [3, 2, 4]),
            ("lecun_uniform", i.lecun_uniform(7), [3, 2, 4]),
            ("uniform_unit_scaling", i.uniform_unit_scaling(1.5, 7), [3, 2, 4]),
            ("identity", i.identity(2.0), [3, 4]),
            ("orthogonal", i.orthogonal(1.5, 7), [4, 3]),
            ("orthogonal/wide", i.orthogonal(1.5, 7), [2, 2, 6]),
            ("delta_orthogonal", init_ops.ConvolutionDeltaOrthogonal(2.0, 7), [3, 2, 2, 4]),
            ("constant", i.constant(np.arange(6.0)), [2, 3]),
        ]:
            record(f"initializers/{name}", session.run(initializer(sizes, dtype=tf.float32)))


initializers()
with open(FILE, "w") as file:
    file.write("\n".join(lines) + "\n")
print(f"{FILE}: {len(lines)} tensors")
