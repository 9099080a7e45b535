"""Ray's actors: 100 calls, one after the other, of an actor in another process. A peer of scripts/bench-peers.

Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON.
"""

import json
import sys
import time

import numpy as np
import ray

CALLS = 100


@ray.remote
class Echo:
    def ask(self, value):
        return value


def main():
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    echo = Echo.remote()
    value = np.float32(1)
    ray.get(echo.ask.remote(value))
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times = []
        while not times or time.perf_counter() < end:
            before = time.perf_counter()
            for _ in range(CALLS):
                value = ray.get(echo.ask.remote(value))
            times.append((time.perf_counter() - before) * 1e6)
        times.sort()
        print(json.dumps({"threads": 1, "runs": len(times), "min_us": times[0],
                          "median_us": times[len(times) // 2]}), flush=True)


main()
