#!/usr/bin/env python3
"""scripts/golden/record_hooks.py > tests/api/training/hook_order.txt

In which order TensorFlow 2.21's monitored sessions call two hooks: a line for each scenario, with what it is, the calls, and
the error of the whole. A hook of the scenario fails once, or asks for the end, in the call that the scenario names.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

ERRORS = {
    "ABORTED": tf.errors.AbortedError,
    "INTERNAL": tf.errors.InternalError,
    "OUT_OF_RANGE": tf.errors.OutOfRangeError,
    "UNAVAILABLE": tf.errors.UnavailableError,
}

# Steps, and what happens: (hook, call, error or "stop"); "singular" sessions are not made anew.
SCENARIOS = {
    "no step": (0, None),
    "plain": (2, None),
    "stop": (3, ("b", "after_run", "stop")),
    "lost before the run": (1, ("b", "before_run", "ABORTED")),
    "lost after the run": (1, ("a", "after_run", "UNAVAILABLE")),
    "lost after the creation": (1, ("b", "after_create_session", "ABORTED")),
    "broken": (2, ("a", "after_run", "INTERNAL")),
    "end of the inputs": (2, ("b", "before_run", "OUT_OF_RANGE")),
    "singular, lost": (1, ("a", "after_run", "ABORTED")),
}


class Hook(v1.train.SessionRunHook):
    def __init__(self, name, event, calls):
        self.name, self.event, self.calls = name, event, calls

    def note(self, call, context=None):
        self.calls.append(f"{self.name}.{call}")
        if self.event is None or self.event[:2] != (self.name, call):
            return
        what, self.event = self.event[2], None
        if what == "stop":
            context.request_stop()
        else:
            raise ERRORS[what](None, None, "as it was told")

    def begin(self):
        self.note("begin")

    def after_create_session(self, session, coord):
        self.note("after_create_session")

    def before_run(self, run_context):
        self.note("before_run", run_context)

    def after_run(self, run_context, run_values):
        self.note("after_run", run_context)

    def end(self, session):
        self.note("end")


def play(name, steps, event):
    calls, result = [], "OK"
    with tf.Graph().as_default():
        x = v1.constant(1.0)
        hooks = [Hook("a", event, calls), Hook("b", event, calls)]
        kind = v1.train.SingularMonitoredSession if name.startswith("singular") else v1.train.MonitoredSession
        try:
            with kind(hooks=hooks) as session:
                for _ in range(steps):
                    if session.should_stop():
                        break
                    session.run(x)
                    calls.append("ran")
        except tf.errors.OpError as error:
            result = next(code for code, kind in ERRORS.items() if isinstance(error, kind))
    happens = " ".join(event) if event else "-"
    return f"{name}: {steps}: {happens}: {' '.join(calls)}: {result}"


for name, (steps, event) in SCENARIOS.items():
    print(play(name, steps, event))
