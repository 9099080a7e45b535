#!/usr/bin/env python3
"""op_scan.py [NAME...]: one node of each of some 350 ops (op_cases.py), here and in TensorFlow, one thread, nothing fetched.

Finds ops that are slower than TensorFlow's; scripts/bench-peers then measures them properly. Prints microseconds, the
least of each side, and their ratio, the worst first. Needs tensorflow-cpu and build/release/bin/troupe.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from op_cases import CASES, ONE_THREAD, C, tf, v1

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = float(os.environ.get("OP_SCAN_SECONDS", "0.12"))


def write(build, values, file):
    """A graph of `build(*variables)`; gives the graph, its initializer, the ops of its results."""
    with tf.Graph().as_default() as graph:
        results = build(*(v1.Variable(C(value), use_resource=False) for value in values))
        init = v1.variables_initializer(v1.global_variables(), name="init")
    results = [results] if isinstance(results, tf.Tensor) else results
    with open(file, "wb") as out:
        out.write(graph.as_graph_def().SerializeToString())
    return graph, init, [getattr(result, "output", result).op for result in results]


def theirs(graph, init, targets):
    with v1.Session(graph=graph, config=ONE_THREAD) as session:
        session.run(init)
        call = session.make_callable(targets)
        call()
        least, runs, begin = float("inf"), 0, time.perf_counter()
        while runs < 5 or time.perf_counter() < begin + SECONDS:
            before = time.perf_counter()
            call()
            least = min(least, time.perf_counter() - before)
            runs += 1
    return 1e6 * least


def ours(file, targets):
    command = [
        f"{ROOT}/build/release/bin/troupe",
        "bench",
        file,
        "--init",
        "init",
        "--threads",
        "1",
        "--seconds",
        str(SECONDS),
    ]
    for target in {op.name for op in targets}:
        command += ["--target", target]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["min_us"]


def main():
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        for name, (build, *values) in CASES.items():
            if len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            file = f"{folder}/{name}.pb"
            try:
                graph, init, targets = write(build, values, file)
                here, there = ours(file, targets), theirs(graph, init, targets)
            except Exception as error:
                print(f"{name}: {error}", getattr(error, "stderr", ""))
                failed = True
                continue
            rows.append((here / there, name, here, there))
    for ratio, name, here, there in sorted(rows, reverse=True):
        print(f"{name:16} {here:10.1f} us   TensorFlow {there:10.1f} us   {ratio:6.2f}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
