#!/usr/bin/env python3
"""scripts/golden/record_hook_steps.py > tests/api/training/hook_steps.txt

For which global steps TensorFlow 2.21's SummarySaverHook and StepCounterHook write summaries: a line for each, with the
hook, how often it is due (in steps, or in seconds of a clock that goes on by one second a step), how many steps are
made, and the steps that its event file has.
"""

import glob
import os
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.logging.set_verbosity(v1.logging.ERROR)


def play(kind, unit, every, steps):
    clock = [1000.0]
    time.time = lambda: clock[0]
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        train = v1.assign_add(step, 1)
        v1.summary.scalar("x", 1.0)
        often = {"steps": every} if unit == "steps" else {"secs": every}
        if kind == "summary":
            hook = v1.train.SummarySaverHook(
                **{f"save_{k}": v for k, v in often.items()}, output_dir=folder, scaffold=v1.train.Scaffold())
            hook._scaffold._summary_op = v1.summary.merge_all()
        else:
            hook = v1.train.StepCounterHook(
                every_n_steps=often.get("steps"), every_n_secs=often.get("secs"), output_dir=folder)
        with v1.train.SingularMonitoredSession(hooks=[hook]) as session:
            for _ in range(steps):
                session.run(train)
                clock[0] += 1
        v1.summary.FileWriterCache.clear()
        found = [e.step for f in glob.glob(folder + "/*tfevents*") for e in v1.train.summary_iterator(f)
                 if e.WhichOneof("what") == "summary"]
    print(f"{kind} {unit} {every} {steps}:", *found)


for kind in ("summary", "counter"):
    for unit, every, steps in [("steps", 1, 4), ("steps", 3, 8), ("steps", 5, 20), ("steps", 100, 50), ("secs", 1, 5),
                               ("secs", 4, 15)]:
        play(kind, unit, every, steps)
