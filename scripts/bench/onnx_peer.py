"""ONNX Runtime: the peer of scripts/bench-peers for inference.

    onnx_peer.py MODEL.onnx THREADS INPUT.npy [OUTPUT.npy]

INPUT is NHWC. Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON.
With OUTPUT the result of one run is written there before.
"""

import json
import sys
import time

import numpy as np
import onnxruntime


def main():
    model, threads, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    x = np.ascontiguousarray(np.load(file).transpose(0, 3, 1, 2))
    feeds = {session.get_inputs()[0].name: x}
    result = session.run(None, feeds)[0]
    if len(sys.argv) > 4:
        np.save(sys.argv[4], result)
        return
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        micros = []
        while True:
            before = time.perf_counter()
            session.run(None, feeds)
            after = time.perf_counter()
            micros.append((after - before) * 1e6)
            if after >= end:
                break
        micros.sort()
        print(json.dumps({"threads": threads, "runs": len(micros), "min_us": micros[0],
                          "median_us": micros[len(micros) // 2], "p99_us": micros[len(micros) * 99 // 100]}),
              flush=True)


main()
