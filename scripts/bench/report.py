"""What scripts/bench-peers writes: the machine, the versions, and tables for documents."""

import datetime
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEGIN, END = "<!-- bench-peers -->", "<!-- end -->"

# The rows of README's table: what is said of each, and its name.
QUOTED = {
    "identity": "Identity in a chain of 10,000, a node",
    "neg": "Neg in a chain of 10,000, a node",
    "minimum": "Minimum in a layered graph 100 x 100, a node",
    "noop": "NoOps joined by control edges, a node",
    "null_callable": "null run by callable",
    "null_name": "null run by name",
    "while": "while loop that counts, an iteration",
    "products": "64 independent 256x256 products",
    "softmax": "training step, softmax regression",
    "mlp": "training step, multi-layer perceptron",
    "cnn": "training step, convolutional network",
    "memory": "resident memory, 10 steps of that network",
    "startup": "start-up to the end of its first step",
    "cluster_read_add_1": "cluster: a worker reads a scalar of a parameter server and adds to it",
    "cluster_read_add_8": "the same, 8 workers",
    "cluster_move_64KB": "cluster: step that moves 64 KB from task to task",
    "cluster_move_64MB": "the same, 64 MB",
}


def output(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine(python):
    """Lines that say where and with what the figures were made."""
    with open("/proc/cpuinfo") as file:
        fields = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    known = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
             "avx512_fp16", "amx_tile", "amx_bf16")
    flags = [flag for flag in known if flag in fields.get("flags", "").split()]
    names = ("tensorflow", "tensorflow-cpu", "torch", "onnxruntime")
    code = ("import importlib.metadata as m\n"
            f"have = {{d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}}\n"
            f"print(', '.join(n + ' ' + have[n] for n in {names} if n in have))")
    onednn = output("dpkg-query", "--show", "--showformat=${Version}", "libdnnl2")
    revision = output("git", "-C", ROOT, "rev-parse", "--short", "HEAD")
    if output("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"):
        revision += " with changes"
    return [f"Machine: {fields.get('model name', 'unknown')}, {os.cpu_count()} processors; {' '.join(flags)}.",
            f"Troupe {revision}, {output('g++', '--version').splitlines()[0]}; "
            f"{output(python, '-c', code)} (TF_ENABLE_ONEDNN_OPTS=1); oneDNN {onednn}. {datetime.date.today()}."]


def figure(value, unit):
    """A time, or what else the unit says, with three digits."""
    if unit == "KiB":
        return f"{value / 1024:.3g} MiB"
    for scale, name in ((1e6, "s"), (1e3, "ms"), (1, "us")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value * 1e3:.3g} ns"


def per(unit):
    """What a time is of: "us/node" is that of a node, "us median" a median."""
    return unit[2:].replace("/", ", a ").replace(", a each", ", each") if unit.startswith("us") else ""


def others(result):
    return "".join(f"; {name} {figure(value, result['unit'])}"
                   for name, value in result.get("other_peers", {}).items())


def table(results):
    lines = ["| row | threads | Troupe | the fastest peer; others | ratio |", "|---|---|---|---|---|"]
    for r in results:
        lines.append(f"| `{r['row']}`{per(r['unit'])} | {r['threads'] or ''} | {figure(r['troupe_us'], r['unit'])} "
                     f"| {r['peer']} {figure(r['peer_us'], r['unit'])}{others(r)} | {r['ratio']:.2f} |")
    return lines


def quoted(results):
    lines = ["| work | threads | Troupe | the fastest peer | ratio |", "|---|---|---|---|---|"]
    for row, words in QUOTED.items():
        found = [r for r in results if r["row"] == row]
        if found:
            unit = found[0]["unit"]
            lines.append(" | ".join([
                f"| {words}",
                " / ".join(str(r["threads"]) for r in found if r["threads"]),
                " / ".join(figure(r["troupe_us"], unit) for r in found),
                " / ".join(f"{r['peer']} {figure(r['peer_us'], unit)}" for r in found),
                " / ".join(f"{r['ratio']:.2f}" for r in found) + " |"]))
    return lines


def replace(path, lines):
    """Between the marks of a file; a file without them becomes the lines."""
    text = ""
    if os.path.exists(path):
        with open(path) as file:
            text = file.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        before, after = "", "\n"
    with open(path, "w") as file:
        file.write(before + "\n".join([BEGIN, *lines, END]) + after)


def write(path, results, machine_lines):
    replace(path, [*machine_lines, "", *table(results)])
    if os.path.realpath(path) == os.path.join(ROOT, "docs/benchmarks.md"):
        replace(os.path.join(ROOT, "README.md"), [*machine_lines, "", *quoted(results)])
