"""The rows of scripts/bench-peers about clusters: real processes on this machine, Troupe's and TensorFlow's in turn.

Processes are told what to do on their standard input (tests/benchmarks/cluster_player.h) and end when it does, so also
when this one is killed.
"""

import json
import os
import select
import socket
import subprocess
import tempfile
import time

SLICE = 0.5
# For one answer. What takes longer hangs.
DEADLINE = 60
WORKERS = (1, 2, 4, 8)
SIZES = {"1KB": 1 << 10, "64KB": 64 << 10, "1MB": 1 << 20, "64MB": 64 << 20}


def addresses(count):
    """Addresses of this machine that nobody uses at the moment, chosen by the kernel."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    names = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return names


class Process:
    def __init__(self, command):
        self.command = command
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.buffer = b""

    def tell(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The answer will say why.

    def answer(self):
        end = time.monotonic() + DEADLINE
        output = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            if not select.select([output], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"no answer within {DEADLINE} s from {self.name()}")
            read = os.read(output, 65536)
            if not read:
                self.errors.seek(0)
                errors = self.errors.read().decode(errors="replace").strip()[-500:]
                raise RuntimeError(f"{self.name()} ended: {errors}")
            self.buffer += read
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def name(self):
        return " ".join(self.command[:12])

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # It has ended already.

    def wait(self):
        try:
            self.process.wait(8)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Cluster:
    """One side: a process for each task of `jobs` ({"ps": 1, "worker": 2}), all that a step needs.

    `players` says who steps: by (job, task), or None for a client without a task, whose master is the first
    worker; and the options of each. Without jobs there is only a client, which works alone.
    """

    def __init__(self, program, jobs, players):
        for attempt in range(3):
            try:
                self.serve(program, jobs, players)
                break
            except RuntimeError:  # Somebody else may have taken an address in the meantime.
                self.close()
                if attempt == 2:
                    raise
        try:
            for process in self.players:  # The first initialises.
                process.tell("open")
                process.answer()
        except BaseException:
            self.close()
            raise

    def serve(self, program, jobs, players):
        self.all, self.players = [], []
        tasks = {job: addresses(count) for job, count in jobs.items()}
        spec = [word for job, list_ in tasks.items() for word in ("--cluster", f"{job}={','.join(list_)}")]
        try:
            for job, list_ in tasks.items():
                for task in range(len(list_)):
                    options = [option.format(**{j: t[0] for j, t in tasks.items()})
                               for option in players.get((job, task), [])]
                    self.start([*program, *spec, "--job", job, "--task", str(task), *options],
                               (job, task) in players)
            if None in players:
                master = ["--master", tasks["worker"][0]] if tasks else []
                self.start([*program, *master, *players[None]], True)
            for process in self.all:
                process.answer()
        except (KeyboardInterrupt, OSError):
            self.close()
            raise

    def start(self, command, plays):
        process = Process(command)
        self.all.append(process)
        if plays:
            self.players.append(process)

    def tell(self, line):
        for process in self.players:
            process.tell(line)
        return [process.answer() for process in self.players]

    def close(self):
        for process in self.all:
            process.end()
        for process in self.all:
            process.wait()


# --- measures: microseconds from a slice of a side, less is better ------------------------------------


def fastest_step(side):
    return min(answer["min_us"] for answer in side.tell(f"seconds {SLICE}"))


def all_steps(side):
    """Of the steps that all players did in a second."""
    return 1e6 / sum(answer["runs"] / answer["seconds"] for answer in side.tell(f"seconds {SLICE}"))


def common_steps(side):
    """Of steps that nobody can do alone: of what each player did."""
    return len(side.players) * 1e6 / sum(a["runs"] / a["seconds"] for a in side.tell(f"together {SLICE}"))


def median_call(side):
    return side.tell(f"calls {SLICE}")[0]["median_us"]


class Rows:
    def __init__(self, bench):
        self.bench = bench
        self.graphs = None
        self.rows = {}
        for n in WORKERS:
            self.rows[f"cluster_read_add_{n}"] = lambda row, n=n: self.workers(
                row, "read_add", n, fastest_step if n == 1 else all_steps)
        for n in WORKERS:
            self.rows[f"cluster_sync_{n}"] = lambda row, n=n: self.workers(row, f"sync_{n}", n, common_steps)
        for n in WORKERS[1:]:
            self.rows[f"cluster_touch_{n}"] = lambda row, n=n: self.measure(
                row, {"worker": n}, {None: self.options(f"touch_{n}")}, fastest_step)
        for name in SIZES:
            self.rows[f"cluster_move_{name}"] = lambda row, name=name: self.move(row, name)
            self.rows[f"cluster_move_{name}_tcp"] = lambda row, name=name: self.move_beside_tcp(row, name)
        self.rows["cluster_small_call"] = self.small_call
        self.rows["cluster_devices"] = self.devices
        self.rows["cluster_cnn_2"] = lambda row: self.workers(row, "cnn", 2, all_steps, per=100, unit="us/image")

    def options(self, name):
        """Of a player, for a graph."""
        if self.graphs is None:
            self.graphs = self.bench.peers.graphs("cluster_graphs")
        graph = self.graphs[name]
        options = ["--graph", graph["file"]]
        for init in graph["init"]:
            options += ["--init", init]
        for feed, file in graph["feeds"].items():
            options += ["--feed", f"{feed}={file}"]
        for target in graph["targets"]:
            options += ["--target", target]
        if "chief" in graph:
            options += ["--chief", graph["chief"]]
        return options

    def workers(self, row, graph, count, measure, **more):
        """Between-graph: each worker process is the client of its own graph; variables are on one parameter server."""
        players = {("worker", task): self.options(f"{graph}_{task}") for task in range(count)}
        self.measure(row, {"ps": 1, "worker": count}, players, measure, **more)

    def measure(self, row, jobs, players, measure, per=1, unit="us", threads=0, peer="TensorFlow", peer_command=None):
        """Runs both sides in turn and reports the least of each. A peer with a command of its own has no cluster."""
        sides, got = {}, {}
        try:
            sides["Troupe"] = Cluster([f"{self.bench.bin}/cluster_peer"], jobs, players)
            if peer_command:
                sides[peer] = Cluster(peer_command, {}, {None: []})
            else:
                sides[peer] = Cluster([self.bench.peers.cluster, self.bench.peers.library], jobs, players)
            got = {name: [] for name in sides}
            for _ in range(max(3, round(self.bench.seconds / SLICE))):
                for name, side in sides.items():
                    got[name].append(measure(side) / per)
        except RuntimeError as error:
            self.bench.fail(f"{row}: {error}")
            return
        finally:
            for side in sides.values():
                side.close()
        least = {name: min(values) for name, values in got.items()}
        middle = {name: sorted(values)[len(values) // 2] for name, values in got.items()}
        self.bench.report(row, threads, least["Troupe"], peer, least[peer], unit,
                          troupe_median=middle["Troupe"], peer_median=middle[peer])

    def move(self, row, name):
        self.measure(row, {"ps": 1, "worker": 1}, {("worker", 0): self.options(f"move_{name}")}, fastest_step)

    def move_beside_tcp(self, row, name):
        """Of a stream there is only the mean time of a block, so that ours is a mean, too."""
        self.measure(row, {"ps": 1, "worker": 1}, {("worker", 0): self.options(f"move_{name}")}, all_steps,
                     peer="raw TCP", peer_command=[f"{self.bench.bin}/raw_tcp", str(SIZES[name])])

    def small_call(self, row):
        """The worker asks the parameter server's master for the devices, while 64 MB are under way to it."""
        options = [*self.options("move_64MB"), "--other", "{ps}"]
        self.measure(row, {"ps": 1, "worker": 1}, {("worker", 0): options}, median_call, unit="us median")

    def devices(self, row):
        options = [*self.options("devices"), "--devices", "2", "--no-optimize"]
        transfers = self.graphs["devices"]["transfers"]
        for threads in (1, 2):
            self.measure(row, {}, {None: [*options, "--threads", str(threads)]}, fastest_step, per=transfers,
                         unit="us/each", threads=threads)
