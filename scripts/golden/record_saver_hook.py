#!/usr/bin/env python3
"""scripts/golden/record_saver_hook.py > tests/api/training/saver_hook_order.txt

How TensorFlow 2.21's CheckpointSaverHook calls a listener: a line for each scenario, with what it is, the calls and their global
steps, the steps of the checkpoints that are left, and the error of the whole.
"""

import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

# Name: steps, save_steps, max_to_keep, what the listener does: (call, step, "stop" or an error).
SCENARIOS = {
    "no step": (0, 2, 5, None),
    "every 2 of 5": (5, 2, 5, None),
    "every 2 of 4": (4, 2, 5, None),
    "every step": (3, 1, 2, None),
    "every 10 of 3": (3, 10, 5, None),
    "a stop": (9, 2, 5, ("after_save", 4, "stop")),
    "a stop at the first save": (9, 2, 5, ("after_save", 0, "stop")),
    "an error before": (9, 2, 5, ("before_save", 2, "INTERNAL")),
    "an error after": (9, 2, 5, ("after_save", 2, "INTERNAL")),
    "an error at the end": (3, 2, 5, ("end", 3, "INTERNAL")),
}


class Listener(v1.train.CheckpointSaverListener):
    def __init__(self, event, calls):
        self.event, self.calls = event, calls

    def note(self, call, step):
        self.calls.append(f"{call}({step})")
        if self.event is None or self.event[:2] != (call, step):
            return None
        if self.event[2] == "stop":
            return True
        raise tf.errors.InternalError(None, None, "as it was told")

    def begin(self):
        self.calls.append("begin")

    def before_save(self, session, step):
        return self.note("before_save", step)

    def after_save(self, session, step):
        return self.note("after_save", step)

    def end(self, session, step):
        return self.note("end", step)


def play(name, steps, save_steps, keep, event):
    calls, result = [], "OK"
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        train = v1.assign_add(step, 1)
        hook = v1.train.CheckpointSaverHook(folder, save_steps=save_steps, saver=v1.train.Saver(max_to_keep=keep),
                                            listeners=[Listener(event, calls)])
        try:
            with v1.train.MonitoredSession(hooks=[hook]) as session:
                for _ in range(steps):
                    if session.should_stop():
                        break
                    session.run(train)
                    calls.append("ran")
        except tf.errors.InternalError:
            result = "INTERNAL"
        left = sorted(int(f.split("-")[1].split(".")[0]) for f in os.listdir(folder) if f.endswith(".index"))
    happens = " ".join(str(part) for part in event) if event else "-"
    return f"{name}: {steps}: {save_steps}: {keep}: {happens}: {' '.join(calls)}: {' '.join(map(str, left))}: {result}"


for name, scenario in SCENARIOS.items():
    print(play(name, *scenario))
