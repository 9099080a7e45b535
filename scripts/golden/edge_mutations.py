"""Changes of golden cases toward the edges: ranks 0 to 6, empty dimensions, the ends of types, attributes at and beyond their
bounds, indices out of order, strings that are long or no UTF-8. Used by record_mutations.py."""

from mutation import TYPES, Mutation
from recorder import array, bytes_of, np, tf
from tensorflow.core.framework import attr_value_pb2, tensor_shape_pb2
from tensorflow.python.framework import op_def_registry

ALL_TYPES = [*TYPES, *(tf.as_dtype(name) for name in "string int4 uint4 float8_e5m2 float8_e4m3fn qint8 quint8 qint16 quint16 qint32"
                       " resource variant".split())]
INTEGERS = [0, 1, -1, 2, 7, -128, 255, 2**31 - 1, -2**31, 2**31, 2**32, 2**62, 2**63 - 1, -2**63]
REALS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, 1e-8, 0.5, 1e8, 3.4e38, -3.4e38, float("inf"), float("-inf"), float("nan")]
DIMENSIONS = [-2, -1, 0, 0, 1, 2, 3, 5, 2**31 - 1, 2**31, 2**40, 2**62]
STRINGS = [b"", b" ", b"\0", b"a\0b", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbfa", b"1e999", b"-0", b"nan",
           b"0x10", b" 7 ", b"9223372036854775808", b"%s%d%n", b"(a*)*b", b"[", b"\\", b"a" * 100000, b"\xc3\xa9" * 50000, b"\r\n", b",,\"",
           "\u00df\u0130\ufb01".encode(), "\U0001f469\u200d\U0001f4bb".encode(), "e\u0301".encode(), b"/", b"..", b"\t"]
MOST_ELEMENTS = 20000


class Edges(Mutation):
    def apply(self):
        changes = [self.tensors] * 6 + [self.attributes] * 4 + [self.types, self.unknown_shape, self.wires, self.defaults]
        done = [self.random.choice(changes)() for _ in range(self.random.choice([1, 1, 2, 3]))]
        for gradient in self.case.gradient:
            gradient.ClearField("grad_y")
        self.case.graph = self.graph.SerializeToString(deterministic=True)
        return any(done)

    def tensors(self):
        """A feed, in every step, or a constant."""
        fed = sorted({f.name for f in self.feeds})
        constants = [n for n in self.graph.node if n.op == "Const" and "value" in n.attr]
        if not fed and not constants:
            return False
        change = self.random.choice([self.rank, self.empty, self.resized, self.broadcast, self.extremes, self.extremes, self.ordered,
                                     self.ordered, self.small])
        if constants and (not fed or self.random.random() < .4):
            tensor = self.random.choice(constants).attr["value"].tensor
            value = self.checked(change(tf.make_ndarray(tensor)))
            tensor.CopyFrom(tf.make_tensor_proto(value, tensor.dtype))
            return True
        name, shape = self.random.choice(fed), None
        for feed in self.feeds:
            if feed.name == name:
                old = array(feed.tensor)
                value = self.checked(change(old))
                feed.tensor, shape = bytes_of(value, None if value.dtype == object else tf.as_dtype(old.dtype)), value.shape
        for node in self.graph.node:
            if node.name == name.split(":")[0] and "shape" in node.attr:
                known = None if self.random.random() < .3 else shape
                node.attr["shape"].CopyFrom(attr_value_pb2.AttrValue(shape=tf.TensorShape(known).as_proto()))
        return True

    @staticmethod
    def checked(value):
        value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        if value.size > MOST_ELEMENTS:
            raise ValueError("too large")
        return value

    def rank(self, value):
        to = self.random.randint(0, 6)
        if to == 0:
            return value.reshape(-1)[0] if value.size else value.reshape(-1)
        while value.ndim < to:
            value = np.expand_dims(value, self.random.randint(0, value.ndim))
            if self.random.random() < .2:
                value = np.concatenate([value, value], self.random.randrange(value.ndim))
        return value.reshape(-1, *value.shape[value.ndim - to + 1:]) if value.size else value

    def empty(self, value):
        if not value.ndim:
            return value.reshape(1)[:0]
        return np.take(value, [], self.random.randrange(value.ndim))

    def resized(self, value):
        if not value.size:
            raise ValueError("nothing to repeat")
        return np.resize(value, [self.random.choice([d, d, d, 0, 1, 2, 3, 5, 9]) for d in value.shape] or [2])

    def broadcast(self, value):
        if not value.ndim:
            return np.stack([value] * self.random.randint(1, 3))
        axis = self.random.randrange(value.ndim)
        if self.random.random() < .5:
            return np.take(value, [0] if value.shape[axis] else [], axis)
        return value[0] if len(value) and self.random.random() < .5 else np.stack([value] * self.random.randint(1, 3))

    def extremes(self, value):
        value = np.array(value)
        flat = value.reshape(-1)
        everywhere = self.random.random() < .2
        for at in range(flat.size) if everywhere else [self.random.randrange(flat.size) for _ in range(min(flat.size, 3))]:
            flat[at] = self.extreme(flat.dtype)
        return flat.reshape(value.shape)

    def extreme(self, dtype):
        if dtype == object:
            return self.random.choice(STRINGS)
        if dtype == bool:
            return self.random.random() < .5
        if np.issubdtype(dtype, np.integer):
            ends = np.iinfo(dtype)
            return self.random.choice([ends.min, ends.max, ends.min + 1, ends.max - 1, 0, 1])
        with np.errstate(all="ignore"):
            if np.issubdtype(dtype, np.complexfloating):
                return np.dtype(dtype).type(complex(self.random.choice(REALS), self.random.choice(REALS)))
            if dtype == np.float64 and self.random.random() < .3:
                return self.random.choice([5e-324, 1e-308, 1.7e308, -1.7e308])
            return np.asarray(self.random.choice(REALS)).astype(dtype)

    def ordered(self, value):
        """Repeated, reversed, sorted, shifted or negative: of indices, what is out of order or out of range."""
        value = np.array(value)
        if value.dtype in (object, bool) or not value.size:
            return self.extremes(value)
        flat = value.reshape(-1)
        with np.errstate(all="ignore"):
            flat = self.random.choice([
                lambda: np.sort(flat), lambda: flat[::-1], lambda: np.full_like(flat, flat[self.random.randrange(flat.size)]),
                lambda: flat + 1, lambda: flat - 1, lambda: -flat, lambda: np.roll(flat, 1), lambda: flat * 2])()
        return flat.astype(value.dtype).reshape(value.shape)

    def small(self, value):
        """Whole numbers around zero: axes, sizes, lengths."""
        value = np.array(value)
        if value.dtype in (object, bool) or not value.size:
            return self.extremes(value)
        flat = value.reshape(-1)
        for _ in range(self.random.randint(1, 2)):
            number = self.random.randint(-7, 7)
            flat[self.random.randrange(flat.size)] = np.asarray(number).astype(value.dtype)
        return flat.reshape(value.shape)

    def attributes(self):
        node = self.tested()
        definition = op_def_registry.get(node.op) if node is not None else None
        if definition is None or not definition.attr:
            return False
        known = self.random.choice(list(definition.attr))
        value = node.attr[known.name]
        allowed = known.allowed_values.list
        if known.type == "int":
            near = [known.minimum, known.minimum - 1, known.minimum + 1] if known.has_minimum else []
            value.i = self.random.choice(near + INTEGERS + [value.i + 1, value.i - 1, -value.i][:3 if abs(value.i) < 2**62 else 0])
        elif known.type == "float":
            value.f = self.random.choice(REALS + [2 * value.f, -value.f])
        elif known.type == "bool":
            value.b = not value.b
        elif known.type == "string":
            value.s = self.random.choice(list(allowed.s) + STRINGS) if self.random.random() < .7 else self.text(value.s)
        elif known.type == "type":
            types = list(allowed.type) if self.random.random() < .7 else []
            value.type = self.random.choice(types or [t.as_datatype_enum for t in ALL_TYPES])
        elif known.type == "shape":
            value.shape.CopyFrom(self.shape())
        elif known.type == "list(int)":
            self.relisted(value.list.i, lambda: self.random.choice(INTEGERS + [0, 1, 2, 3]))
        elif known.type == "list(float)":
            self.relisted(value.list.f, lambda: self.random.choice(REALS))
        elif known.type == "list(bool)":
            self.relisted(value.list.b, lambda: self.random.random() < .5)
        elif known.type == "list(string)":
            self.relisted(value.list.s, lambda: self.random.choice(list(allowed.s) + STRINGS))
        elif known.type == "list(type)":
            self.relisted(value.list.type, lambda: self.random.choice(list(allowed.type) or [t.as_datatype_enum for t in ALL_TYPES]))
        elif known.type == "list(shape)":
            shapes = list(value.list.shape)
            self.relisted(shapes, self.shape)
            value.ClearField("list")
            value.list.shape.extend(shapes)
        else:
            return False
        return True

    def relisted(self, items, item):
        """One more, one less, or another."""
        kind = self.random.random()
        if not items or kind < .25:
            items.append(item())
        elif kind < .5:
            del items[self.random.randrange(len(items))]
        else:
            items[self.random.randrange(len(items))] = item()

    def shape(self):
        if self.random.random() < .1:
            return tensor_shape_pb2.TensorShapeProto(unknown_rank=True)
        sizes = [self.random.choice(DIMENSIONS) for _ in range(self.random.randint(0, 6))]
        return tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in sizes])

    def types(self):
        return self.other_type(ALL_TYPES)

    def unknown_shape(self):
        """What the shape function would refuse the kernel has to."""
        nodes = [n for n in self.graph.node if n.op == "Placeholder"]
        for node in nodes:
            shape = node.attr["shape"].shape
            if self.random.random() < .5:
                shape.Clear()
                shape.unknown_rank = True
            else:
                for dim in shape.dim:
                    dim.size = -1 if self.random.random() < .5 else dim.size
        return bool(nodes) and self.tensors()

    def wires(self):
        """Two inputs swapped, or one taken twice."""
        node = self.tested()
        inputs = [i for i, name in enumerate(node.input) if not name.startswith("^")] if node is not None else []
        if len(inputs) < 2:
            return False
        a, b = self.random.sample(inputs, 2)
        if self.random.random() < .5:
            node.input[a] = node.input[b]
        else:
            node.input[a], node.input[b] = node.input[b], node.input[a]
        return True

    def defaults(self):
        node = self.tested()
        if node is None or not node.attr:
            return False
        del node.attr[self.random.choice(sorted(node.attr))]
        return True
