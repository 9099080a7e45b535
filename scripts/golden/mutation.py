"""Random changes of golden cases, for record_mutations.py."""

from recorder import array, bytes_of, np, tf, v1
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import op_def_registry

# What a type is replaced by, and the tolerances of types.
TYPES = [tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.uint8, tf.int8, tf.int16, tf.bool,
         tf.complex64, tf.complex128, tf.uint16, tf.uint32, tf.uint64]
TOLERANCES = {tf.float32: (1e-4, 1e-5), tf.complex64: (1e-4, 1e-5), tf.float64: (1e-9, 1e-10),
              tf.complex128: (1e-9, 1e-10), tf.float16: (4e-3, 4e-3), tf.bfloat16: (2e-2, 2e-2)}


class Mutation:
    """Changes a case in place. Each change returns whether it has changed anything."""

    def __init__(self, case, draw):
        self.case, self.random = case, draw
        self.graph = v1.GraphDef.FromString(case.graph)
        self.feeds = [f for part in (*case.step, *case.gradient) for f in part.feed]

    def apply(self):
        changes = [self.other_type, self.other_attribute, self.other_shape, self.other_values, self.other_constant]
        done = [self.random.choice(changes)() for _ in range(self.random.randint(1, 2))]
        self.case.graph = self.graph.SerializeToString(deterministic=True)
        return any(done)

    def tested(self):
        """A node of the op that the case is about, or any that computes."""
        nodes = [n for n in self.graph.node if n.op == self.case.op] or [
            n for n in self.graph.node if n.op not in ("Const", "Placeholder")]
        return self.random.choice(nodes) if nodes else None

    def other_type(self, types=TYPES):
        """One type of the whole graph becomes another."""
        used = sorted({a.type for n in self.graph.node for a in n.attr.values() if a.type in
                       [t.as_datatype_enum for t in types]})
        if not used:
            return False
        old, new = self.random.choice(used), self.random.choice(types)
        for node in self.graph.node:
            for attribute in node.attr.values():
                if attribute.type == old:
                    attribute.type = new.as_datatype_enum
                if attribute.HasField("tensor") and attribute.tensor.dtype == old:
                    attribute.tensor.CopyFrom(tf.make_tensor_proto(self.cast(tf.make_ndarray(attribute.tensor), new)))
        for feed in self.feeds:
            value = array(feed.tensor)
            if tf.as_dtype(value.dtype).as_datatype_enum == old:
                feed.tensor = bytes_of(self.cast(value, new))
        if (self.case.rtol or self.case.atol) or new in TOLERANCES:
            self.case.rtol, self.case.atol = TOLERANCES.get(new, (0, 0))
        for gradient in self.case.gradient:
            gradient.ClearField("grad_y")
        return True

    @staticmethod
    def cast(value, dtype):
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(dtype.as_numpy_dtype)

    def other_attribute(self):
        node = self.tested()
        if node is None:
            return False
        definition = op_def_registry.get(node.op)
        known = {a.name: a for a in definition.attr} if definition else {}
        names = sorted(name for name, a in node.attr.items()
                       if a.WhichOneof("value") in ("i", "b", "s", "f", "list", "shape", "type") and name in known)
        if not names:
            return False
        name = self.random.choice(names)
        value = node.attr[name]
        kind = value.WhichOneof("value")
        if kind == "b":
            value.b = not value.b
        elif kind == "i":
            value.i += self.random.choice([-2, -1, 1, 2])
        elif kind == "f":
            value.f = self.random.choice([0.0, 1.0, -1.0, 0.5, 2 * value.f])
        elif kind == "s":
            allowed = known[name].allowed_values.list.s
            value.s = self.random.choice(list(allowed)) if allowed else self.text(value.s)
        elif kind == "type":
            value.type = self.random.choice(list(known[name].allowed_values.list.type) or
                                            [t.as_datatype_enum for t in TYPES])
        elif kind == "shape":
            if not value.shape.dim:
                return False
            value.shape.dim[self.random.randrange(len(value.shape.dim))].size = self.random.choice([-1, 0, 1, 2, 3])
        elif value.list.i:
            at = self.random.randrange(len(value.list.i))
            value.list.i[at] += self.random.choice([-1, 1, 2])
        elif value.list.s:
            at = self.random.randrange(len(value.list.s))
            value.list.s[at] = self.text(value.list.s[at])
        else:
            return False
        return True

    def other_shape(self):
        """Of a placeholder and what is fed to it, in every step."""
        named = {n.name: n for n in self.graph.node}
        fed = sorted({f.name for f in self.feeds if array(f.tensor).dtype != object})
        if not fed:
            return False
        name = self.random.choice(fed)
        change = self.random.choice([
            lambda v: v[None], lambda v: v.T, lambda v: v[..., None], lambda v: v[:0] if v.ndim else v,
            lambda v: v[1:] if v.ndim else v, lambda v: np.concatenate([v, v]) if v.ndim else np.stack([v, v]),
            lambda v: v.reshape(-1), lambda v: v[0] if v.ndim and len(v) else v])
        shape = None
        for feed in self.feeds:
            if feed.name == name:
                value = np.ascontiguousarray(change(array(feed.tensor)))
                feed.tensor, shape = bytes_of(value), value.shape
        node = named[name.split(":")[0]]
        if "shape" in node.attr:
            unknown = self.random.random() < .3
            node.attr["shape"].CopyFrom(attr_value_pb2.AttrValue(shape=tf.TensorShape(None if unknown else shape).as_proto()))
        for gradient in self.case.gradient:
            gradient.ClearField("grad_y")
        return True

    def text(self, value):
        """A string with a byte more, less, or another."""
        if isinstance(value, str):
            value = value.encode()
        if not isinstance(value, bytes):
            return value
        at = self.random.randrange(len(value) + 1)
        byte = self.random.choice([b" ", b"0", b"-", b".", b"%", b"\\", b"(", b"*", b"\n", b"\0", b"a", b"\xc3", b"\xff", b""])
        return value[:at] + byte + value[at + self.random.choice([0, 1]):]

    def edge(self, value):
        """The same elements in another order, some of them special."""
        value = np.array(value)
        flat = value.reshape(-1)
        if flat.size == 0 or value.dtype == bool:
            return value
        if value.dtype == object:
            at = self.random.randrange(flat.size)
            flat[at] = self.text(flat[at])
            return flat.reshape(value.shape)
        flat = flat[np.array(self.random.sample(range(flat.size), flat.size))]
        special = [0, 1, -1, 2, 5, 100] if np.issubdtype(value.dtype, np.integer) else [0, -0.0, np.inf, -np.inf, np.nan, 1e-30]
        if np.issubdtype(value.dtype, np.unsignedinteger):
            special = [0, 1, 2]
        for _ in range(self.random.randint(0, 2)):
            with np.errstate(all="ignore"):
                flat[self.random.randrange(flat.size)] = np.asarray(self.random.choice(special)).astype(value.dtype)
        return flat.reshape(value.shape)

    def other_values(self):
        if not self.feeds:
            return False
        name = self.random.choice(sorted({f.name for f in self.feeds}))
        for feed in self.feeds:
            if feed.name == name:
                feed.tensor = bytes_of(self.edge(array(feed.tensor)))
        return True

    def other_constant(self):
        constants = [n for n in self.graph.node if n.op == "Const"]
        if not constants:
            return False
        tensor = self.random.choice(constants).attr["value"].tensor
        tensor.CopyFrom(tf.make_tensor_proto(self.edge(tf.make_ndarray(tensor))))
        return True
