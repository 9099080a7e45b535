#!/usr/bin/env python3
"""scripts/golden/record_messages.py [--first SEED] [--count N] OUT.pb.gz

DecodeProtoV2 and EncodeProto on random message types: fields of all types, packed and not, with defaults, groups, nested messages,
extensions; messages whose fields are in any order, with values of other wire types, unknown fields, and wrong bytes; and text.
What TensorFlow 2.21 gives for them. tests/golden/messages.pb.gz holds what the default arguments give. The bytes are written here,
field by field, so that there are some which no library writes.
"""

import argparse
import random
import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from recorder import Recorder, bytes_of, golden, np, tf, v1, write

Field = descriptor_pb2.FieldDescriptorProto
VARINT, FIXED64, BYTES, START, END, FIXED32 = range(6)
# By a field's type: its form on the wire, and the element types that hold its values.
TYPES = {
    Field.TYPE_DOUBLE: (FIXED64, [tf.float64]), Field.TYPE_FLOAT: (FIXED32, [tf.float32, tf.float64]),
    Field.TYPE_INT64: (VARINT, [tf.int64]), Field.TYPE_UINT64: (VARINT, [tf.uint64]),
    Field.TYPE_INT32: (VARINT, [tf.int32, tf.int64]), Field.TYPE_FIXED64: (FIXED64, [tf.uint64]),
    Field.TYPE_FIXED32: (FIXED32, [tf.uint32, tf.uint64]), Field.TYPE_BOOL: (VARINT, [tf.bool]),
    Field.TYPE_STRING: (BYTES, [tf.string]), Field.TYPE_GROUP: (START, [tf.string]),
    Field.TYPE_MESSAGE: (BYTES, [tf.string]), Field.TYPE_BYTES: (BYTES, [tf.string]),
    Field.TYPE_UINT32: (VARINT, [tf.uint32, tf.uint64]), Field.TYPE_ENUM: (VARINT, [tf.int32]),
    Field.TYPE_SFIXED32: (FIXED32, [tf.int32, tf.int64]), Field.TYPE_SFIXED64: (FIXED64, [tf.int64]),
    Field.TYPE_SINT32: (VARINT, [tf.int32, tf.int64]), Field.TYPE_SINT64: (VARINT, [tf.int64]),
}
DEFAULTS = {Field.TYPE_DOUBLE: "-1.25", Field.TYPE_FLOAT: "inf", Field.TYPE_INT64: "-7", Field.TYPE_UINT64: "70000",
            Field.TYPE_INT32: "-4", Field.TYPE_FIXED64: "5000000000", Field.TYPE_FIXED32: "300", Field.TYPE_BOOL: "true",
            Field.TYPE_STRING: "none", Field.TYPE_BYTES: "a\\000b", Field.TYPE_UINT32: "3000000000", Field.TYPE_ENUM: "BLUE",
            Field.TYPE_SFIXED32: "-9", Field.TYPE_SFIXED64: "-8", Field.TYPE_SINT32: "11", Field.TYPE_SINT64: "-12"}


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def tag(number, form):
    return varint(number << 3 | form)


class Messages:
    """A message type, drawn from a seed, and messages of it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.third = self.random.random() < 0.3  # the language's third version: no defaults, groups, extensions
        file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="test",
                                                  syntax="proto3" if self.third else "proto2")
        self.message = file.message_type.add(name="M")
        inner = file.message_type.add(name="Inner")
        inner.field.add(name="x", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
        inner.field.add(name="inner", number=2, type=Field.TYPE_MESSAGE, type_name=".test.Inner", label=Field.LABEL_REPEATED)
        colors = file.enum_type.add(name="Color")
        for name, number in ("RED", 0 if self.third else 3), ("BLUE", 7), ("NEGATIVE", -2):
            colors.value.add(name=name, number=number)
        numbers = self.random.sample(range(1, 40), self.random.randint(1, 9))
        for i, number in enumerate(numbers):
            self.add_field(self.message.field.add(name=f"f{i}", number=number))
        if not self.third and self.random.random() < 0.3:
            self.message.extension_range.add(start=100, end=200)
            self.add_field(file.extension.add(name="ext", number=100, extendee=".test.M"), group=False)
        self.fields = [(f.name, f) for f in self.message.field] + [("test." + f.name, f) for f in file.extension]
        self.files = descriptor_pb2.FileDescriptorSet(file=[file])
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        self.type = message_factory.GetMessageClass(pool.FindMessageTypeByName("test.M"))

    def add_field(self, field, group=True):
        kinds = [t for t in TYPES if t != Field.TYPE_GROUP or group and not self.third]
        field.type = self.random.choice(kinds)
        field.label = self.random.choice([Field.LABEL_OPTIONAL, Field.LABEL_REPEATED])
        repeated = field.label == Field.LABEL_REPEATED
        if field.type == Field.TYPE_MESSAGE:
            field.type_name = ".test.Inner"
        elif field.type == Field.TYPE_ENUM:
            field.type_name = ".test.Color"
        elif field.type == Field.TYPE_GROUP:
            group = self.message.nested_type.add(name=field.name.upper())
            group.field.add(name="z", number=1, type=Field.TYPE_SINT32, label=Field.LABEL_OPTIONAL)
            field.type_name, field.name = ".test.M." + group.name, field.name.lower()
        if not repeated and not self.third and field.type in DEFAULTS and self.random.random() < 0.5:
            field.default_value = DEFAULTS[field.type]
        if repeated and TYPES[field.type][0] not in (BYTES, START) and self.random.random() < 0.5:
            field.options.packed = self.random.random() < 0.8

    def number(self):
        return self.random.choice([0, 1, self.random.randint(-5, 300), self.random.getrandbits(32), -self.random.getrandbits(31),
                                   self.random.getrandbits(64)])

    def inner(self):
        return b"" if self.random.random() < 0.3 else b"\x08" + varint(self.random.randint(-3, 200))

    def value(self, form, field_type=None):
        """A value without its tag."""
        if form == VARINT:
            if field_type == Field.TYPE_ENUM:
                return varint(self.random.choice([0, 3, 7, -2]))
            return varint(self.number())
        if form == BYTES:
            data = self.inner() if field_type == Field.TYPE_MESSAGE else self.text()
            return varint(len(data)) + data
        if field_type in (Field.TYPE_DOUBLE, Field.TYPE_FLOAT):
            return struct.pack("<d" if form == FIXED64 else "<f", self.random.uniform(-100, 100))
        bits = 64 if form == FIXED64 else 32
        return (self.number() & (1 << bits) - 1).to_bytes(bits // 8, "little")

    def text(self):
        return "".join(self.random.choice("abcä ") for _ in range(self.random.randint(0, 4))).encode()

    def group(self, number):
        return tag(number, START) + self.inner() + tag(number, END)

    def occurrence(self):
        """One field as it comes in a message, with its tag."""
        chance = self.random.random()
        if chance < 0.08:  # unknown
            number = self.random.choice([41, 77, 500])
            form = self.random.choice([VARINT, FIXED64, BYTES, START, FIXED32])
            return self.group(number) if form == START else tag(number, form) + self.value(form)
        field = self.random.choice(self.fields)[1]
        form = TYPES[field.type][0]
        if chance < 0.12:  # of another form than the type's
            form = self.random.choice([VARINT, FIXED64, FIXED32] + ([BYTES] if form in (BYTES, START) else []))
            return tag(field.number, form) + self.value(form)
        if form == START:
            return self.group(field.number)
        if form != BYTES and field.label == Field.LABEL_REPEATED and self.random.random() < 0.4:
            data = b"".join(self.value(form, field.type) for _ in range(self.random.randint(1, 4)))
            return tag(field.number, BYTES) + varint(len(data)) + data
        return tag(field.number, form) + self.value(form, field.type)

    def serialized(self, wrong):
        parts = [self.occurrence() for _ in range(self.random.randint(0, 12))]
        if self.random.random() < 0.5:
            parts.sort(key=lambda p: p[0])
        data = b"".join(parts)
        if wrong and data:
            at = self.random.randrange(len(data))
            return self.random.choice([data[:at], data[:at] + bytes([self.random.randrange(256)]) + data[at + 1:]])
        return data

    def printed(self, wrong):
        message = self.type()
        try:
            message.ParseFromString(self.serialized(False))
        except Exception:  # a value that the message does not take
            return b""
        message.DiscardUnknownFields()
        text = text_format.MessageToString(message, as_one_line=self.random.random() < 0.5)
        return (text + self.random.choice(["nothing: 1", "f0 {", "]", '"'])).encode() if wrong else text.encode()

    def source(self):
        return b"bytes://" + self.files.SerializeToString(deterministic=True)

    def decode(self, name):
        chosen = self.random.choices(self.fields, k=self.random.randint(1, len(self.fields) + 1))
        if self.random.random() < 0.8:
            chosen = [f for i, f in enumerate(chosen) if f not in chosen[:i]]
        types = [self.random.choice(TYPES[f.type][1]) for _, f in chosen]
        if self.random.random() < 0.05:
            types[0] = self.random.choice([tf.int16, tf.float16, tf.float32, tf.string, tf.int64, tf.uint32])
        text, sanitize = self.random.random() < 0.2, self.random.random() < 0.2
        shape = self.random.choice([[], [1], [3], [2, 2], [0], [3, 1, 2]])
        wrong = self.random.random() < 0.25
        messages = np.empty(shape, object)
        for i in np.ndindex(*shape):
            messages[i] = (self.printed if text else self.serialized)(wrong)
        graph = tf.Graph()
        with graph.as_default():
            out = tf.raw_ops.DecodeProtoV2(
                bytes=v1.placeholder(tf.string, shape if self.random.random() < 0.5 else None, name="bytes"), name="op",
                message_type=self.random.choice(["test.M"] * 20 + ["test.N", "M", ""]),
                field_names=[n for n, _ in chosen] + (["none"] if self.random.random() < 0.03 else []),
                output_types=types, descriptor_source=self.source(), sanitize=sanitize,
                message_format="text" if text else self.random.choice(["binary"] * 20 + ["json"]))
        fetches = [t.name for t in (out.sizes, *out.values)]
        return self.case(name, "DecodeProtoV2", graph, {"bytes": (messages, tf.string)}, fetches)

    def encode(self, name):
        fields = [f for f in self.fields if not f[0].startswith("test.")]
        chosen = self.random.choices(fields, k=self.random.randint(1, len(fields)))
        types = [self.random.choice(TYPES[f.type][1]) for _, f in chosen]
        if self.random.random() < 0.05:
            types[0] = self.random.choice([tf.int16, tf.float16, tf.float32, tf.string, tf.int64, tf.uint32])
        batch = self.random.choice([[1], [3], [2, 2], [0], []])
        feeds, widths = {}, [self.random.randint(0, 3) for _ in chosen]
        graph = tf.Graph()
        for i, (dtype, width) in enumerate(zip(types, widths)):
            feeds[f"values{i}"] = (self.values(dtype, batch + [width]), dtype)
        most = [w + (self.random.random() < 0.03) for w in widths]
        sizes = np.stack([self.numpy.integers(0, m + 1, batch) for m in most], -1).astype(np.int32)
        if self.random.random() < 0.05:
            sizes = sizes[..., :-1]
        feeds["sizes"] = (sizes, tf.int32)
        with graph.as_default():
            known = self.random.random() < 0.5
            inputs = {n: v1.placeholder(t, np.shape(v) if known else None, name=n) for n, (v, t) in feeds.items()}
            try:
                tf.raw_ops.EncodeProto(
                    sizes=inputs["sizes"], values=[inputs[f"values{i}"] for i in range(len(chosen))], name="op",
                    field_names=[n for n, _ in chosen] + (["none"] if self.random.random() < 0.03 else []),
                    message_type=self.random.choice(["test.M"] * 20 + ["test.N"]), descriptor_source=self.source())
            except ValueError:  # values that are vectors
                return None
        return self.case(name, "EncodeProto", graph, feeds, ["op:0"])

    def values(self, dtype, shape):
        if dtype == tf.string:
            values = np.empty(shape, object)
            for i in np.ndindex(*shape):
                values[i] = self.text()
            return values
        if dtype == tf.bool:
            return self.numpy.random(shape) < 0.5
        if dtype.is_floating:
            return self.numpy.uniform(-100, 100, shape).astype(dtype.as_numpy_dtype)
        info = np.iinfo(dtype.as_numpy_dtype)
        small = self.numpy.integers(max(info.min, -300), 300, shape)
        any_value = self.numpy.integers(info.min, info.max, shape, dtype=dtype.as_numpy_dtype, endpoint=True)
        return np.where(self.numpy.random(shape) < 0.6, small, any_value).astype(dtype.as_numpy_dtype)

    @staticmethod
    def case(name, op, graph, feeds, fetches):
        case = golden.Case(name=name, op=op, graph=graph.as_graph_def().SerializeToString(deterministic=True), tag=["string"])
        case.shape.extend(golden.ShapeCheck(tensor=f) for f in fetches)
        feed = [golden.NamedTensor(name=f"{n}:0", tensor=bytes_of(v, t)) for n, (v, t) in feeds.items()]
        case.step.add(feed=feed, fetch=fetches)
        return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("out")
    options = parser.parse_args()
    cases, record = [], Recorder()
    for seed in range(options.first, options.first + options.count):
        for make in Messages.decode, Messages.encode:
            case = make(Messages(seed), f"{make.__name__}_{seed}")
            case = case and record(case)
            if case:
                cases.append(case)
    write(options.out, cases)


if __name__ == "__main__":
    sys.exit(main())
