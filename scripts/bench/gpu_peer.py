"""PyTorch on a card (or a processor), measuring what tests/benchmarks/gpu_benchmark.cc does: scripts/gpu-bench's peer.

    gpu_peer.py [--device cuda] [--small] [--compile] ROW

Each line of the standard input is a number of seconds to run for; each is answered by one line of JSON. Single kernels
are those of cuBLAS and cuDNN, called one after the other and waited for at the end, as steps of Troupe are; rows about
bandwidth are a copy of as many bytes as Troupe's kernel reads and writes; `feed` and `fetch` copy pinned memory.
--compile: by torch.compile.
"""

import argparse
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


WARM_RUNS = 3  # In the first one cudnn.benchmark looks for algorithms.


def repeat(count, call):
    def step():
        for _ in range(count):
            call()
    return step, count


class Rows:
    def __init__(self, device, small, compiled):
        self.device, self.small, self.compiled = device, small, compiled

    def size(self, usual, least):
        return least if self.small else usual

    def random(self, *shape, dtype=torch.float32):
        return torch.empty(shape, device=self.device, dtype=dtype).uniform_(-0.1, 0.1)

    # --- kernels

    def node(self):
        return self.calls(torch.neg)

    def chain(self):
        return self.calls(torch.neg, torch.tanh)

    def calls(self, *functions):
        count = self.size(1000, 100)
        start, calls = self.random(16), [functions[i % len(functions)] for i in range(count)]

        def step():
            x = start
            for call in calls:
                x = call(x)
        return step, count

    def matmul(self, kind):
        side = self.size(8192 if kind == "bf16" else 4096, 64)
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        dtype = torch.bfloat16 if kind == "bf16" else torch.float32
        a, b = self.random(side, side, dtype=dtype), self.random(side, side, dtype=dtype)
        return repeat(4, lambda: torch.matmul(a, b))

    def conv(self, name):
        """conv_KIND_TYPE_SIDExSIDExINPUTS_SIZExSIZExOUTPUTS_sSTRIDE"""
        kind, dtype, image, kernel, stride = name.split("_")
        side, _, inputs = map(int, image.split("x"))
        size, _, outputs = map(int, kernel.split("x"))
        stride, batch = int(stride[1:]), 32
        if self.small:
            batch, side, inputs, outputs = 2, 8, min(inputs, 4), 4
        dtype = torch.bfloat16 if dtype == "bf16" else torch.float32
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False
        out, layout = -(-side // stride), torch.channels_last
        x = self.random(batch, inputs, side, side, dtype=dtype).to(memory_format=layout)
        w = self.random(outputs, inputs, size, size, dtype=dtype).to(memory_format=layout)
        dy = self.random(batch, outputs, out, out, dtype=dtype).to(memory_format=layout)
        padding = (size - 1) // 2
        if kind == "forward":
            return repeat(4, lambda: F.conv2d(x, w, stride=stride, padding=padding))
        mask = [kind == "data", kind == "filter", False]
        return repeat(4, lambda: torch.ops.aten.convolution_backward(
            dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, mask))

    def bandwidth(self, kind):
        """A copy reads and writes as many bytes: `neg` 8 an element, `add` 12, sums 4."""
        side = self.size(8192, 256)
        count = side * side * {"neg": 8, "add": 12}.get(kind, 4) // 8
        x, y = self.random(count), self.random(count)
        return repeat(4, lambda: y.copy_(x))

    def pinned(self):
        host = torch.ones(self.size(16 << 20, 1 << 16))
        return host.pin_memory() if self.device == "cuda" else host

    def feed(self):
        host = self.pinned()
        there = torch.empty_like(host, device=self.device)
        return repeat(1, lambda: there.copy_(host, non_blocking=True))

    def fetch(self):
        host = self.pinned()
        there = torch.ones(host.shape, device=self.device)
        return repeat(1, lambda: host.copy_(there, non_blocking=True))

    # --- training steps

    def train(self, module, optimizer, loss, inputs=()):
        """`inputs` are fed: they are on the host before each step."""
        module = module.to(self.device)
        optimizer = optimizer(module.parameters())
        run = torch.compile(loss) if self.compiled else loss

        def step():
            optimizer.zero_grad(set_to_none=True)
            run(module, *(x.to(self.device, non_blocking=True) for x in inputs)).backward()
            optimizer.step()
        return step, 1

    def train_cnn(self):
        batch = self.size(100, 4)
        images, labels = torch.rand(batch, 1, 28, 28), torch.arange(batch) % 10
        pads = {6: (2, 3, 2, 3), 5: (1, 2, 1, 2), 4: (1, 1, 1, 1)}

        class Cnn(nn.Module):
            def __init__(self):
                super().__init__()
                self.convs = nn.ModuleList([nn.Conv2d(1, 6, 6), nn.Conv2d(6, 12, 5, 2), nn.Conv2d(12, 24, 4, 2)])
                self.dense, self.out = nn.Linear(7 * 7 * 24, 200), nn.Linear(200, 10)

            def forward(self, x):
                for conv in self.convs:
                    x = F.relu(conv(F.pad(x, pads[conv.kernel_size[0]])))
                return self.out(F.dropout(F.relu(self.dense(x.flatten(1))), 0.25))

        return self.train(Cnn(), lambda p: torch.optim.Adam(p, 0.003, fused=True),
                          lambda module, x, y: F.cross_entropy(module(x), y), (images, labels))

    def train_resnet50(self, kind):
        batch, side = self.size(128, 2), self.size(224, 32)
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        images = torch.rand(batch, 3, side, side, device=self.device).to(memory_format=torch.channels_last)
        labels = torch.arange(batch) % 1000
        module = ResNet50(self.size(64, 4)).to(memory_format=torch.channels_last)

        def loss(module, y):
            with torch.autocast(self.device, torch.bfloat16, enabled=kind == "bf16"):
                logits = module(images)
            return F.cross_entropy(logits.float(), y)

        return self.train(module, lambda p: torch.optim.SGD(p, 0.01, 0.9, fused=self.device == "cuda"), loss,
                          (labels,))

    def train_lstm(self):
        length, batch, units = self.size(50, 3), self.size(50, 2), self.size(128, 8)
        x = self.random(length, batch, units)
        return self.train(nn.LSTM(units, units), lambda p: torch.optim.SGD(p, 0.1),
                          lambda module: module(x)[0].square().mean())

    def train_lstm_block(self):
        return self.train_lstm()

    def train_transformer(self):
        torch.backends.cuda.matmul.allow_tf32 = True
        batch, length, width, heads = (self.size(*s) for s in ((8, 1), (512, 8), (1024, 32), (16, 4)))
        x = self.random(batch, length, width)

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
                self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

            def forward(self, x):
                parts = self.qkv(self.norms[0](x)).view(batch, length, 3, heads, width // heads)
                q, k, v = parts.permute(2, 0, 3, 1, 4)
                mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
                x = x + self.out(mixed)
                return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))

        return self.train(Block(), lambda p: torch.optim.SGD(p, 0.01), lambda module: module(x).square().mean())

    def find(self, row):
        for prefix in ("matmul_", "conv_", "bandwidth_", "train_resnet50_"):
            if row.startswith(prefix):
                return getattr(self, prefix[:-1])(row[len(prefix):])
        return getattr(self, row)()


class ResNet50(nn.Module):
    """He and others, "Deep Residual Learning", 2015, table 1; the stride is in the 3x3 convolution."""

    def __init__(self, first):
        super().__init__()

        def conv(inputs, outputs, size, stride):
            return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
                                 nn.BatchNorm2d(outputs))

        class Bottleneck(nn.Module):
            def __init__(self, inputs, width, stride):
                super().__init__()
                self.a, self.b = conv(inputs, width, 1, 1), conv(width, width, 3, stride)
                self.c = conv(width, 4 * width, 1, 1)
                self.by = conv(inputs, 4 * width, 1, stride) if inputs != 4 * width else nn.Identity()

            def forward(self, x):
                return F.relu(self.c(F.relu(self.b(F.relu(self.a(x))))) + self.by(x))

        layers, inputs = [conv(3, first, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], first
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                layers.append(Bottleneck(inputs, first << stage, 2 if block == 0 and stage > 0 else 1))
                inputs = 4 * (first << stage)
        self.layers, self.dense = nn.Sequential(*layers), nn.Linear(inputs, 1000)

    def forward(self, x):
        return self.dense(self.layers(x).mean((2, 3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("row")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    on_card = arguments.device == "cuda"
    work, per = Rows(arguments.device, arguments.small, arguments.compile).find(arguments.row)

    def step():
        work()
        if on_card:
            torch.cuda.synchronize()

    clock = time.perf_counter
    for line in sys.stdin:
        seconds = float(line)
        warm, runs = clock() + seconds / 10, 0
        while runs < WARM_RUNS or clock() < warm:
            step()
            runs += 1
        times = []
        before = clock()
        end = before + seconds
        while not times or before < end:
            step()
            after = clock()
            times.append(1e6 * (after - before) / per)
            before = after
        times.sort()
        peak = torch.cuda.max_memory_allocated() if on_card else 0
        print(json.dumps({"runs": len(times), "min_us": times[0], "median_us": times[len(times) // 2],
                          "peak_bytes": peak}), flush=True)


if __name__ == "__main__":
    main()
