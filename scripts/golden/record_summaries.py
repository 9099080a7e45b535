#!/usr/bin/env python3
"""scripts/golden/record_summaries.py [FILE]

What TensorFlow's ops make of tensors as summaries, into tests/golden/summary.pb.gz: the serialized messages, byte for
byte, PNG and WAV included.
"""

import os
import sys

import numpy as np

from recorder import FOLDER, bytes_of, golden, record, tf, v1, write

raw = tf.raw_ops
REAL = [tf.bfloat16, tf.float64, tf.float32, tf.half, tf.int16, tf.int32, tf.int64, tf.int8, tf.uint16, tf.uint32,
        tf.uint64, tf.uint8]
rng = np.random.default_rng(1)


def case(name, op, tensors, **attrs):
    """Feeds all inputs, arrays or pairs of an array and its type; fetches the summary."""
    result = golden.Case(name=f"{op}/{name}", op=op, tag=["string"])
    step = result.step.add()
    with tf.Graph().as_default() as graph:
        inputs = {}
        for argument, value in tensors.items():
            values = value if isinstance(value, list) else [value]
            fed = []
            for value in values:
                array, dtype = value if isinstance(value, tuple) else (np.asarray(value), None)
                dtype = dtype or (tf.string if array.dtype == object else tf.as_dtype(array.dtype))
                placeholder = v1.placeholder(dtype, name=f"in_{argument}")
                step.feed.add(name=placeholder.name, tensor=bytes_of(array, dtype))
                fed.append(placeholder)
            inputs[argument] = fed if isinstance(tensors[argument], list) else fed[0]
        if op == "AudioSummary":  # no graph of today can hold it
            rate = attrs.pop("sample_rate")
            raw.AudioSummaryV2(**inputs, sample_rate=rate, **attrs, name="summary")
            definition = first_form(graph.as_graph_def(), rate)
        else:
            getattr(raw, op)(**inputs, **attrs, name="summary")
            definition = graph.as_graph_def()
        step.fetch.append("summary:0")
        result.shape.add(tensor="summary:0")
        result.graph = definition.SerializeToString(deterministic=True)
    return record(result)


def first_form(definition, rate):
    """With AudioSummary in place of AudioSummaryV2, as a graph of its time."""
    for node in definition.node:
        if node.op == "AudioSummaryV2":
            node.op = "AudioSummary"
            del node.input[2:]
            node.attr["sample_rate"].f = rate
    definition.versions.producer = 14
    return definition


def texts(*values):
    return np.array(values, object)


def numbers(dtype, shape):
    """Some of the type's range, its ends included if they are finite doubles."""
    if dtype.is_integer:
        low, high = max(dtype.min, -10**6), min(dtype.max, 10**6)
        values = rng.integers(low, high, shape, endpoint=True).reshape(-1)
        if values.size > 1:
            values = values.astype(dtype.as_numpy_dtype)
            values[0], values[1] = dtype.min, dtype.max
        return values.reshape(shape).astype(dtype.as_numpy_dtype)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 4, shape)
    return values.astype(dtype.as_numpy_dtype)


def scalars():
    for dtype in REAL:
        for shape in [(), (3,), (2, 2)]:
            count = int(np.prod(shape))
            tags = texts(*(f"loss/{i}" for i in range(count))).reshape(shape)
            yield case(f"{dtype.name}/{len(shape)}", "ScalarSummary",
                       {"tags": tags, "values": (numbers(dtype, shape), dtype)})
    special = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    yield case("special", "ScalarSummary", {"tags": texts("a", "b", "c", "d"), "values": special})
    yield case("large", "ScalarSummary", {"tags": texts("a", "b"), "values": np.array([1e300, 1e-300])})
    yield case("same_tag", "ScalarSummary", {"tags": texts("a", "a"), "values": np.array([1.0, 2.0])})
    yield case("empty", "ScalarSummary", {"tags": texts(), "values": np.zeros(0)})
    yield case("empty_tag", "ScalarSummary", {"tags": np.array("", object), "values": np.float32(1)})
    for name, tags, values in [("shapes", texts("a", "b"), np.zeros(3, np.float32)),
                               ("scalar_vector", texts("a"), np.float32(1)),
                               ("vector_scalar", np.array("a", object), np.zeros(1, np.float32)),
                               ("ranks", texts("a", "b").reshape(1, 2), np.zeros(2, np.float32))]:
        yield case(f"error/{name}", "ScalarSummary", {"tags": tags, "values": values})


def histograms():
    tag = np.array("weights", object)
    for dtype in REAL:
        for shape in [(), (100,), (3, 4, 5)]:
            yield case(f"{dtype.name}/{len(shape)}", "HistogramSummary",
                       {"tag": tag, "values": (numbers(dtype, shape), dtype)})
    largest = np.finfo(np.float64).max
    for name, values in [
            ("zeros", np.zeros(10)), ("empty", np.zeros(0)), ("empty_matrix", np.zeros((0, 3))),
            ("limits", np.array([1e-12, -1e-12, 1.1e-12, 1e20, -1e20, 5e-324, -5e-324, -0.0])),
            ("beyond", np.array([1e300, -1e300, np.nextafter(largest, 0), -largest])),
            ("squares_overflow", np.array([1e200, -1e200, 1.0])),
            ("many", rng.standard_normal(20000)),
            ("wide", rng.standard_normal(5000) * 10.0 ** rng.integers(-14, 22, 5000))]:
        yield case(name, "HistogramSummary", {"tag": tag, "values": values})
    for name, values in [("nan", [1.0, np.nan]), ("inf", [np.inf]), ("minus_inf", [1.0, -np.inf, 2.0])]:
        yield case(f"error/{name}", "HistogramSummary", {"tag": tag, "values": np.array(values)})
    yield case("error/half_inf", "HistogramSummary", {"tag": tag, "values": (np.array([np.inf]), tf.bfloat16)})
    yield case("error/tag", "HistogramSummary", {"tag": texts("a"), "values": np.zeros(2)})


def images():
    tag = np.array("inputs", object)
    for channels in [1, 3, 4]:
        pixels = rng.integers(0, 256, (2, 5, 7, channels)).astype(np.uint8)
        yield case(f"uint8/{channels}", "ImageSummary", {"tag": tag, "tensor": pixels})
        for dtype in [np.float16, np.float32, np.float64]:
            values = rng.standard_normal((2, 5, 7, channels)).astype(dtype)
            name = np.dtype(dtype).name
            yield case(f"{name}/{channels}/signed", "ImageSummary", {"tag": tag, "tensor": values})
            yield case(f"{name}/{channels}/positive", "ImageSummary", {"tag": tag, "tensor": np.abs(values)})
            values[0, 1, 2, 0], values[1, 4, 6, channels - 1], values[1, 0, 0, 0] = np.nan, np.inf, -np.inf
            yield case(f"{name}/{channels}/not_finite", "ImageSummary", {"tag": tag, "tensor": values})
    ramp = np.linspace(-1, 3, 64 * 48).reshape(1, 64, 48, 1).astype(np.float32)
    yield case("ramp", "ImageSummary", {"tag": tag, "tensor": ramp})
    yield case("one", "ImageSummary", {"tag": tag, "tensor": ramp}, max_images=1)
    yield case("more_than_wanted", "ImageSummary", {"tag": tag, "tensor": np.zeros((5, 1, 1, 1), np.uint8)}, max_images=2)
    yield case("fewer_than_wanted", "ImageSummary", {"tag": tag, "tensor": np.zeros((2, 1, 1, 1), np.uint8)}, max_images=9)
    yield case("none", "ImageSummary", {"tag": tag, "tensor": np.zeros((0, 2, 2, 3), np.float32)})
    yield case("black", "ImageSummary", {"tag": tag, "tensor": np.full((1, 2, 2, 1), 1e-9, np.float32)})
    yield case("dark", "ImageSummary", {"tag": tag, "tensor": np.full((1, 2, 2, 1), -1e-9, np.float32)})
    yield case("all_nan", "ImageSummary", {"tag": tag, "tensor": np.full((1, 2, 2, 3), np.nan, np.float32)})
    photo = (np.indices((90, 120)).sum(0)[..., None] * [1, 2, 3] + rng.integers(0, 9, (90, 120, 3))) % 256
    yield case("photo", "ImageSummary", {"tag": tag, "tensor": photo[None].astype(np.uint8)})
    blue = tf.make_tensor_proto(np.array([0, 0, 255], np.uint8))
    yield case("bad_color", "ImageSummary", {"tag": tag, "tensor": np.full((1, 1, 2, 3), np.nan, np.float32)},
               bad_color=blue)
    for name, tensor, attrs in [
            ("rank", np.zeros((2, 2, 3), np.float32), {}), ("channels", np.zeros((1, 2, 2, 2), np.float32), {}),
            ("no_height", np.zeros((1, 0, 2, 3), np.float32), {}), ("no_width", np.zeros((1, 2, 0, 3), np.uint8), {}),
            ("short_color", np.zeros((1, 1, 1, 4), np.float32), {"bad_color": blue}),
            ("color_type", np.zeros((1, 1, 1, 1), np.float32), {"bad_color": tf.make_tensor_proto([1.0])}),
            ("color_rank", np.zeros((1, 1, 1, 1), np.float32),
             {"bad_color": tf.make_tensor_proto(np.zeros((1, 4), np.uint8))})]:
        yield case(f"error/{name}", "ImageSummary", {"tag": tag, "tensor": tensor}, **attrs)
    yield case("error/tag", "ImageSummary", {"tag": texts("a"), "tensor": np.zeros((1, 1, 1, 1), np.uint8)})


def sounds():
    tag = np.array("speech", object)
    wave = (rng.standard_normal((2, 50, 2)) * 0.5).astype(np.float32)
    special = np.array([[0, 1, -1, 2, -2, 0.5 / 32768, -0.5 / 32768, 1.5 / 32768, np.inf, -np.inf, 1e-30]], np.float32)
    for name, tensor, rate, attrs in [
            ("stereo", wave, 44100.0, {}), ("mono", wave[..., 0], 8000.0, {}), ("one", wave, 16000.5, {"max_outputs": 1}),
            ("special", special, 22050.0, {}), ("slow", wave, 0.25, {}), ("channels", wave[:, :3].repeat(9, 2), 1.5, {}),
            ("some", wave.repeat(3, 0), 11025.0, {"max_outputs": 4}), ("none", wave[:0], 8000.0, {}),
            ("error/rank", wave[0, 0], 8000.0, {}), ("no_frames", wave[:, :0], 8000.0, {}),
            ("error/no_channels", wave[:, :, :0], 8000.0, {}), ("error/zero_rate", wave, 0.0, {}),
            ("error/negative_rate", wave, -1.0, {}), ("error/nan_rate", wave, np.nan, {}),
            ("error/large_rate", wave, 2.0**33, {}), ("error/many_channels", np.zeros((1, 1, 65536), np.float32), 8e3, {})]:
        yield case(name, "AudioSummaryV2", {"tag": tag, "tensor": tensor, "sample_rate": np.float32(rate)}, **attrs)
        if not name.startswith("error/nan"):
            yield case(name, "AudioSummary", {"tag": tag, "tensor": tensor}, sample_rate=float(np.float32(rate)), **attrs)
    yield case("vector_rate", "AudioSummaryV2", {"tag": tag, "tensor": wave, "sample_rate": np.float32([8000])})
    yield case("error/rates", "AudioSummaryV2", {"tag": tag, "tensor": wave, "sample_rate": np.float32([1, 2])})
    yield case("error/tag", "AudioSummaryV2", {"tag": texts("a"), "tensor": wave, "sample_rate": np.float32(1)})


def tensors():
    metadata = v1.SummaryMetadata(display_name="shown", summary_description="of the test")
    metadata.plugin_data.plugin_name, metadata.plugin_data.content = "text", b"\0\1"
    values = [(numbers(t, (2, 3)), t) for t in REAL] + [
        (np.array([[True, False]]), tf.bool), (np.array([1 + 2j, 3 - 4j]), tf.complex64),
        (np.array([1j]), tf.complex128), (texts(b"one", b"\xff\0", b""), tf.string), (np.array(1.5), tf.float32),
        (np.array("text", object), tf.string), (np.zeros((0, 2)), tf.float32), (np.zeros(2), tf.int64)]
    for i, value in enumerate(values):
        name = f"{value[1].name}/{i}"
        yield case(name, "TensorSummary", {"tensor": value}, description="", labels=[], display_name="")
        yield case(name, "TensorSummaryV2", {"tag": np.array("t", object), "tensor": value,
                                             "serialized_summary_metadata": np.array(metadata.SerializeToString(), object)})
    yield case("plain", "TensorSummaryV2", {"tag": np.array("t", object), "tensor": np.float32(1),
                                            "serialized_summary_metadata": np.array(b"", object)})
    for name, tag, data in [("tag", texts("t"), np.array(b"", object)), ("metadata", np.array("t", object), texts(b""))]:
        yield case(f"error/{name}", "TensorSummaryV2",
                   {"tag": tag, "tensor": np.float32(1), "serialized_summary_metadata": data})
    yield case("no_message", "TensorSummaryV2", {"tag": np.array("t", object), "tensor": np.float32(1),
                                                "serialized_summary_metadata": np.array(b"\xff\xff", object)})


def merges():
    def message(*tags):
        return v1.Summary(value=[v1.Summary.Value(tag=t, simple_value=len(t)) for t in tags]).SerializeToString()

    nameless = v1.Summary(value=[v1.Summary.Value(node_name="n", simple_value=1)]).SerializeToString()
    for name, inputs in [
            ("two", [message("a"), message("bb", "ccc")]), ("one", [message("a")]), ("nothing", [b"", b""]),
            ("nameless", [nameless, nameless]), ("error/same", [message("a"), message("b", "a")]),
            ("error/same_in_one", [message("a", "a")]), ("error/no_message", [b"\xff\xff"]),
            ("error/cut", [message("abcdefgh")[:-2]])]:
        yield case(name, "MergeSummary", {"inputs": [np.array(b, object) for b in inputs]})
    yield case("vectors", "MergeSummary", {"inputs": [texts(message("a"), message("b")), np.array(message("c"), object)]})


def main():
    cases = [c for group in (scalars, histograms, images, sounds, tensors, merges) for c in group()]
    write(sys.argv[1] if len(sys.argv) > 1 else os.path.join(FOLDER, "summary.pb.gz"), cases)


main()
