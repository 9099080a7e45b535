#!/usr/bin/env python3
"""scripts/golden/record_mutations.py [--seed S] [--count N] [--stages LOW HIGH] [--fresh] [--once] [--edges]
                                    [--died FILE] [--keep LIST FILE]... OUT.pb.gz

OUT.pb.gz, tests/golden/mutated.pb.gz or mutated_late.pb.gz: cases of the other files with other shapes, types, attributes and
values, and what TensorFlow 2.21 gives for them. The cases that the file holds are recorded once more, since they are what the
product has failed at some time; N new ones (0) follow, drawn from S and named after it; with --fresh they are all. Their highest
stage is between LOW and HIGH (1 and 5). A case of which TensorFlow gives two different results is left out, as is one on which it
dies; --died writes the latter to a file, for `troupe_random_ops --replay`. --once takes half the time and leaves the former in; of a
hundred thousand such cases the product fails few. With --edges the changes are those of edge_mutations.py, and every op is drawn as
often as another. Those whose names LIST has, one a line, come from FILE by --keep, and are recorded twice.
"""

import argparse
import glob
import os
import random
import sys

from edge_mutations import Edges
from mutation import Mutation
from recorder import FOLDER, Recorder, golden, ops, read, read_file, stages, v1, write


def candidates(low, high):
    """Cases of the other files whose highest stage is between two."""
    known = stages()
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.pb.gz"))):
        name = os.path.basename(path).removesuffix(".pb.gz")
        if name.startswith("mutated") or name == "flow_gradients":
            continue
        for case in read(name).case:
            used = ops(v1.GraphDef.FromString(case.graph))
            if case.step and low <= max((known.get(op, 0) for op in used), default=0) <= high:
                yield case


def recorded_twice(recorder, case):
    first = recorder(case)
    return first if first is not None and first == recorder(case) else None


def recorded_again(recorder, case):
    again = recorded_twice(recorder, case)
    if again is None:
        print(f"{case.name}: cannot be recorded again and stays as it is")
    elif again != case:
        print(f"{case.name}: TensorFlow gives something else now")
    return again or case


def drawn(recorder, options, died):
    draw = random.Random(options.seed)
    sources = list(candidates(*options.stages)) if options.count else []
    by_op = {}
    for source in sources:
        by_op.setdefault(source.op, []).append(source)
    change = Edges if options.edges else Mutation
    made = 0
    while made < options.count:
        base = draw.choice(by_op[draw.choice(sorted(by_op))]) if options.edges else draw.choice(sources)
        case = golden.Case()
        case.CopyFrom(base)
        case.name = f"{base.name}/seed_{options.seed}_{made}"
        try:
            if not change(case, draw).apply():
                continue
        except (TypeError, ValueError, KeyError, OverflowError):  # no such value, type or shape
            continue
        made += 1
        mutated = case
        case = recorder(mutated) if options.once else recorded_twice(recorder, mutated)
        if recorder.child is None:
            died.append(mutated)
        # Where the first of several steps fails, the others compare nothing.
        if case is not None and not (len(case.step) > 1 and case.step[0].error):
            yield case


def kept(recorder, names, path):
    with open(names) as file:
        wanted = set(file.read().splitlines())
    for case in read_file(path).case:
        again = recorded_twice(recorder, case) if case.name in wanted else None
        if again is not None:
            yield again


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--stages", type=int, nargs=2, default=(1, 5))
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--edges", action="store_true")
    parser.add_argument("--died")
    parser.add_argument("--keep", nargs=2, action="append", default=[])
    parser.add_argument("out")
    options = parser.parse_args()
    recorder, cases, died = Recorder(seconds=5), [], []
    if not options.fresh:
        cases += [recorded_again(recorder, case) for case in read_file(options.out).case]
    for names, path in options.keep:
        cases += kept(recorder, names, path)
    cases += drawn(recorder, options, died)
    write(options.out, cases)
    if options.died:
        write(options.died, died)


if __name__ == "__main__":
    sys.exit(main())
