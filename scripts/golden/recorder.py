"""Golden cases (tests/golden/golden.proto) recorded from TensorFlow: plain kernels on one thread of the CPU, graph
optimisers off, oneDNN too unless the script asks for it before. Used by the scripts beside this one; run by build/peers/venv,
which scripts/bench-peers makes.
"""

import glob
import gzip
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.framework import errors_impl

VERSION = "2.21"
if not tf.__version__.startswith(VERSION):
    sys.exit(f"The golden cases are TensorFlow {VERSION}'s; this is {tf.__version__}.")
v1 = tf.compat.v1
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tests/golden")
MOST_MEMORY = 16 << 30  # of a process that records; TensorFlow itself takes a few GB of addresses


def load_messages():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--python_out={folder}", f"-I{FOLDER}", "golden.proto"], check=True)
        sys.path.insert(0, folder)
        import golden_pb2
        sys.path.pop(0)
    return golden_pb2


golden = load_messages()


def read_file(path):
    with gzip.open(path) as file:
        return golden.CaseFile.FromString(file.read())


def read(name):
    return read_file(os.path.join(FOLDER, name + ".pb.gz"))


def write(path, cases):
    """The same bytes for the same cases: no time, no name."""
    data = golden.CaseFile(case=cases).SerializeToString(deterministic=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(data)
    print(f"{path}: {len(cases)} cases")


def stages():
    with open(os.path.join(FOLDER, "tensorflow_ops.txt")) as file:
        return {op: int(stage) for op, stage in (line.split() for line in file if line.strip())}


def ops(graph):
    return [n.op for n in graph.node] + [n.op for f in graph.library.function for n in f.node_def]


def array(data):
    return tf.make_ndarray(tensor_pb2.TensorProto.FromString(data))


def bytes_of(value, dtype=None):
    return tf.make_tensor_proto(value, dtype).SerializeToString(deterministic=True)


def code(error):
    name = {value: name for name, value in vars(errors_impl).items() if name.isupper() and isinstance(value, int)}
    return name[error.error_code]


def named(feeds, graph):
    return {graph.get_tensor_by_name(f.name): array(f.tensor) for f in feeds}


def imported(case):
    """The graph of a case, or None: then the case says with which code it is refused."""
    graph = tf.Graph()
    case.build_error = ""
    with graph.as_default():
        try:
            tf.import_graph_def(v1.GraphDef.FromString(case.graph), name="")
            return graph
        except tf.errors.OpError as error:
            case.build_error = code(error)
        except ValueError:  # what the client makes of INVALID_ARGUMENT
            case.build_error = "INVALID_ARGUMENT"
    for field in ("shape", "step", "gradient"):
        case.ClearField(field)
    return None


def record(case, graph=None):
    """What TensorFlow gives for the graph, feeds and fetches of a case, in place of what it holds. Gradients of loops
    need the `graph` as it was made: what is imported does not know its loops."""
    graph = graph or imported(case)
    if graph is None:
        return case
    for shape in case.shape:
        shape.shape = graph.get_tensor_by_name(shape.tensor).shape.as_proto().SerializeToString()
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with v1.Session(graph=graph, config=config) as session:
        for step in case.step:
            record_step(session, graph, step)
        for gradient in case.gradient:
            record_gradient(session, graph, gradient)
    return case


def record_step(session, graph, step):
    accepted, step.error = step.error, ""
    step.ClearField("expected")
    fetches = [graph.get_tensor_by_name(name) for name in step.fetch]
    targets = [graph.get_operation_by_name(name) for name in step.target]
    try:
        values, _ = session.run((fetches, targets), named(step.feed, graph))
        step.expected.extend(bytes_of(v, f.dtype.base_dtype) for v, f in zip(values, fetches))
    except tf.errors.OpError as error:
        # Several codes are accepted where the kernel that is first to fail is a matter of chance.
        step.error = accepted if "|" in accepted and code(error) in accepted.split("|") else code(error)


def record_gradient(session, graph, gradient):
    gradient.error = ""
    gradient.ClearField("expected")
    with graph.as_default():
        ys, xs = ([graph.get_tensor_by_name(name) for name in names] for names in (gradient.y, gradient.x))
        given = [tf.constant(array(g)) for g in gradient.grad_y] or None
        try:
            found = v1.gradients(ys, xs, given)
        except LookupError:
            gradient.error = "NOT_FOUND"
            return
        dense = [None if g is None else tf.convert_to_tensor(g) for g in found]
    values = session.run([g for g in dense if g is not None], named(gradient.feed, graph))
    rest = iter(zip(values, [g for g in dense if g is not None]))
    for g in dense:
        gradient.expected.append(b"" if g is None else bytes_of(*(lambda v, t: (v, t.dtype))(*next(rest))))


def finite(case):
    """Whether all that is expected is finite."""
    expected = [e for part in (*case.step, *case.gradient) for e in part.expected if e]
    values = [array(e) for e in expected]
    return all(np.isfinite(v).all() for v in values if np.issubdtype(v.dtype, np.inexact))


# --- in a process of its own: some graphs end TensorFlow's ---------------------------------------------


def serve(connection):
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    while True:
        try:
            case = golden.Case.FromString(connection.recv_bytes())
        except EOFError:  # the parent has ended
            return
        try:
            answer = record(case).SerializeToString(deterministic=True)
        except Exception:  # whatever the client makes of a graph that it does not like
            answer = b""
        connection.send_bytes(answer)


def used(pid):
    """Seconds of processor time of a process, and whether any of its threads wants more."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    states = set()
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        try:
            with open(path) as file:
                states.add(file.read().rpartition(")")[2].split()[0])
        except OSError:  # the thread has ended
            pass
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), bool(states & {"R", "D"})


class Recorder:
    """Records cases in a child process, which is replaced when it dies or hangs: when it has computed or slept over a case for some
    seconds. How long it waits for a processor does not count: the machine may be busy."""

    def __init__(self, seconds=60):
        self.seconds = seconds
        self.child = None
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["recorder"])  # TensorFlow is loaded once, not for each child

    def __call__(self, case):
        """The recorded case, or None."""
        if self.child is None:
            self.pipe, end = multiprocessing.Pipe()
            self.child = self.context.Process(target=serve, args=(end,), daemon=True)
            self.child.start()
            end.close()
        self.pipe.send_bytes(case.SerializeToString())
        try:
            if self.answered():
                answer = self.pipe.recv_bytes()
                return golden.Case.FromString(answer) if answer else None
        except EOFError:
            pass
        self.child.kill()
        self.child.join()
        self.child = None
        return None

    def answered(self):
        """False if the child has hung."""
        start, slept = used(self.child.pid)[0], 0.0
        while not self.pipe.poll(0.25):
            seconds, busy = used(self.child.pid)
            slept += 0 if busy else 0.25
            if seconds - start > self.seconds or slept > self.seconds:
                return False
        return True
