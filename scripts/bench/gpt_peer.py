#!/usr/bin/env python3
"""The example small_gpt beside PyTorch: the same model, text, hyperparameters and number of steps, in turn.

    scripts/bench/gpt_peer.py [--steps N] [--batch N] [--threads N] [--rounds N] [--cpu] [--bin FOLDER]

Needs the Python of scripts/bench-peers, which has torch. Both train for N steps, and say the perplexity on the last
tenth of the text, which neither has learned. Then both are timed in turn, `rounds` times 50 steps each; the smallest mean of
some steps counts, or, with --cpu, the median of the processor's time for a step, for a machine that has other things to
do. PyTorch is eager, with attention and AdamW as one op each.
"""

import argparse
import collections
import math
import os
import re
import resource
import statistics
import subprocess
import time

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTEXT, CHANNELS, HEADS, BLOCKS, DROPOUT = 128, 128, 4, 3, 0.1
RATE, DECAY, CLIP, WARM_UP = 2e-3, 0.1, 1.0, 100


def read_text():
    """As examples/shared/text_corpus.cc: runs of blanks are one blank; the last tenth is for the test."""
    text = b""
    for name in ("Apache-2.0", "Artistic", "GFDL-1.3", "MPL-2.0", "LGPL-2.1", "GPL-2", "GPL-3"):
        with open(f"/usr/share/common-licenses/{name}", "rb") as file:
            text = re.sub(rb"[ \t\n\v\f\r]+", b" ", text + file.read() + b" ")
    text = text.lstrip(b" ")
    ids = {c: i for i, (c, _) in enumerate(collections.Counter(text).most_common())}
    numbers = np.array([ids[c] for c in text])
    kept = len(numbers) // 10
    return numbers[:-kept], numbers[-kept:], len(ids)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention = nn.LayerNorm(CHANNELS)
        self.qkv = nn.Linear(CHANNELS, 3 * CHANNELS)
        self.output = nn.Linear(CHANNELS, CHANNELS)
        self.before_mlp = nn.LayerNorm(CHANNELS)
        self.mlp_in = nn.Linear(CHANNELS, 4 * CHANNELS)
        self.mlp_out = nn.Linear(4 * CHANNELS, CHANNELS)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x):
        batch = x.shape[0]
        q, k, v = (y.view(batch, CONTEXT, HEADS, -1).transpose(1, 2)
                   for y in self.qkv(self.before_attention(x)).split(CHANNELS, 2))
        heard = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.output(heard.transpose(1, 2).reshape(batch, CONTEXT, CHANNELS)))
        return x + self.dropout(self.mlp_out(F.gelu(self.mlp_in(self.before_mlp(x)))))


class Gpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.characters = nn.Embedding(vocabulary, CHANNELS)
        self.positions = nn.Parameter(torch.empty(CONTEXT, CHANNELS))
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.last = nn.LayerNorm(CHANNELS)
        self.logits = nn.Linear(CHANNELS, vocabulary)
        for name, parameter in self.named_parameters():
            if name in ("characters.weight", "positions"):
                nn.init.normal_(parameter, std=0.1)
            elif parameter.dim() == 2:
                for part in parameter.split(CHANNELS) if "qkv" in name else [parameter]:
                    nn.init.xavier_uniform_(part)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids):
        x = self.blocks(self.dropout(self.characters(ids) + self.positions))
        return self.logits(self.last(x))


class Training:
    def __init__(self, training, vocabulary, steps, batch):
        torch.manual_seed(1)
        self.text, self.steps, self.batch, self.count = torch.from_numpy(training), steps, batch, 0
        self.random = np.random.default_rng(1)
        self.model = Gpt(vocabulary)
        matrices = [p for p in self.model.parameters() if p.dim() == 2]
        others = [p for p in self.model.parameters() if p.dim() != 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
            lr=RATE, betas=(0.9, 0.99), fused=True)

    def step(self):
        rate = RATE * min((self.count + 1) / WARM_UP, 1.0)
        rate *= 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(self.count / self.steps, 1.0)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        begins = torch.from_numpy(self.random.integers(0, len(self.text) - CONTEXT, self.batch))
        at = begins[:, None] + torch.arange(CONTEXT)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.text[at]).flatten(0, 1), self.text[at + 1].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.count += 1
        return loss.item()

    @torch.no_grad()
    def perplexity(self, text):
        """As in the example: windows that overlap by half, of which the second half counts, of the first one all."""
        self.model.eval()
        losses = []
        text = torch.from_numpy(text)
        for begin in range(0, len(text) - CONTEXT, CONTEXT // 2):
            window = text[begin:begin + CONTEXT + 1]
            loss = F.cross_entropy(self.model(window[None, :-1])[0], window[1:], reduction="none")
            losses.append(loss[CONTEXT // 2 if begin else 0:])
        self.model.train()
        return math.exp(torch.cat(losses).mean().item())


def theirs(training):
    """Milliseconds of a step: wall, the smallest mean of 5; of the processor."""
    walls, processor = [], time.process_time()
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(5):
            training.step()
        walls.append(1e3 * (time.perf_counter() - start) / 5)
    return min(walls), 1e3 * (time.process_time() - processor) / 50


def troupe(options, steps):
    """Perplexity on the test text, the smallest mean time of a step, the processor's time of the whole."""
    command = [os.path.join(options.bin, "small_gpt"), "--steps", str(steps), "--batch", str(options.batch),
               "--threads", str(options.threads), "--samples", "0"]
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return (float(re.search(r"test perplexity: ([\d.]+)", out)[1]),
            min(float(time) for time in re.findall(r"([\d.]+) ms/step", out)),
            1e3 * (sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before))


def ours(options):
    """As `theirs`. Runs of 60 and 10 steps differ by 50 steps and by nothing else."""
    longer, shorter = troupe(options, 60), troupe(options, 10)
    return longer[1], (longer[2] - shorter[2]) / 50


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/release/bin"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    training, test, vocabulary = read_text()
    peer = Training(training, vocabulary, options.steps, options.batch)
    for _ in range(options.steps):
        peer.step()
    print(f"test perplexity after {options.steps} steps: Troupe {troupe(options, options.steps)[0]:.2f}, "
          f"PyTorch {peer.perplexity(test):.2f}", flush=True)
    rounds = [(ours(options), theirs(peer)) for _ in range(options.rounds)]
    if options.cpu:
        us, them = (statistics.median(side[i][1] for side in rounds) for i in (0, 1))
    else:
        us, them = (min(side[i][0] for side in rounds) for i in (0, 1))
    of_what = " of the processor" if options.cpu else ""
    print(f"a step of {options.batch} x {CONTEXT} characters, {options.threads} threads: Troupe {us:.1f} ms, "
          f"PyTorch {torch.__version__} {them:.1f} ms{of_what}, ratio {us / them:.2f}")


main()
