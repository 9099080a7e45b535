"""PyTorch eager, training the three models: the peer of scripts/bench-peers.

    torch_peer.py MODEL THREADS IMAGES.npy LABELS.npy

Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON.
"""

import json
import math
import sys
import time

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


def initialise(module):
    """Truncated normal 0.1 and biases 0.1."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.trunc_normal_(layer.weight, std=0.1, a=-0.2, b=0.2)
            nn.init.constant_(layer.bias, 0.1)
    return module


class Same(nn.Module):
    """A convolution with TensorFlow's SAME padding, where the odd pixel is added behind."""

    def __init__(self, side, inputs, outputs, size, stride):
        super().__init__()
        total = max((math.ceil(side / stride) - 1) * stride + size - side, 0)
        before = total // 2
        self.padding = (before, total - before, before, total - before)
        self.conv = nn.Conv2d(inputs, outputs, size, stride)

    def forward(self, x):
        return F.relu(self.conv(F.pad(x, self.padding)))


def make(model):
    if model == "softmax":
        module = nn.Linear(784, 10)
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)
        return module
    if model == "mlp":
        layers, inputs = [], 784
        for units in (200, 100, 60, 30):
            layers += [nn.Linear(inputs, units), nn.ReLU(), nn.Dropout(0.25)]
            inputs = units
        return initialise(nn.Sequential(*layers, nn.Linear(inputs, 10)))
    return initialise(nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), Same(28, 1, 6, 6, 1), Same(28, 6, 12, 5, 2), Same(14, 12, 24, 4, 2),
        nn.Flatten(), nn.Linear(7 * 7 * 24, 200), nn.ReLU(), nn.Dropout(0.25), nn.Linear(200, 10)))


def main():
    model, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    images = torch.from_numpy(np.load(sys.argv[3]))
    labels = torch.from_numpy(np.load(sys.argv[4]).astype(np.int64))
    module = make(model)
    if model == "softmax":
        optimizer = torch.optim.SGD(module.parameters(), lr=0.003)
    else:
        # One kernel for all parameters: on the CPU the fastest of PyTorch's implementations.
        optimizer = torch.optim.Adam(module.parameters(), lr=0.003, fused=True)
    reduction = "sum" if model == "softmax" else "mean"
    count = 0

    def step():
        nonlocal count
        if model != "softmax":
            optimizer.param_groups[0]["lr"] = 0.0001 + 0.0029 * math.exp(-count / 2000)
        count += 1
        optimizer.zero_grad()
        F.cross_entropy(module(images), labels, reduction=reduction).backward()
        optimizer.step()

    clock = time.perf_counter
    for line in sys.stdin:
        seconds = float(line)
        warm, runs = clock() + seconds / 10, 0
        while runs < 5 or clock() < warm:
            step()
            runs += 1
        times = []
        before = clock()
        end = before + seconds
        while before < end:
            step()
            after = clock()
            times.append(1e6 * (after - before))
            before = after
        times.sort()
        n = len(times)
        print(json.dumps({"threads": threads, "runs": n, "min_us": times[0], "median_us": times[n // 2],
                          "p99_us": times[min(n - 1, n * 99 // 100)]}), flush=True)


main()
