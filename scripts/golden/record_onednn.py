#!/usr/bin/env python3
"""scripts/golden/record_onednn.py [--seed S] OUT.pb.gz

tests/golden/onednn.pb.gz: ops on quantized types that TensorFlow 2.21 computes by oneDNN alone, at random, and what it gives.
"""

import argparse
import os
import sys

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
from record_quantized import Cases, Inputs
from recorder import Recorder, np, tf, write


class OneDnnCases(Cases):
    def concat(self, dtype, axis, shapes, ranges):
        inputs = Inputs()
        for shape in shapes:
            inputs.add(self.integers(dtype, shape), dtype)
        inputs.add(np.int32(axis))
        for ends in zip(*ranges):
            for end in ends:
                inputs.add(np.float32(end))
        self.op("QuantizedConcatV2", inputs, N=len(shapes))

    def matmul(self, after, mode, bias_type):
        """Nothing is transposed: TensorFlow forgets that. A range of `a` from 0 on with a bias of floats: what others make
        TensorFlow add it scales twice."""
        m, n, k = (self.random.randint(1, 9) for _ in range(3))
        a, b = self.integers(tf.quint8, (m, k)), np.maximum(self.integers(tf.qint8, (k, n)), -127)
        bias = self.numbers.uniform(-3, 3, n).astype(np.float32) if bias_type == tf.float32 else self.numbers.integers(-9999, 9999, n).astype(np.int32)
        top, most = self.random.uniform(.1, 9), self.random.uniform(.1, 2)
        ranges = [(0.0 if bias_type == tf.float32 else self.random.uniform(-top, 0), top), (-most, most)]
        if "quantize" in after:
            ranges.append((0.0, self.random.uniform(1, 2 * top * most * k)))
        types = {} if after == "AndRelu" else {"Tbias": bias_type}
        result = {"AndDequantize": tf.float32}.get(after, tf.quint8 if "Requantize" in after else tf.qint32)
        tolerance = (1e-5, 1e-5) if result == tf.float32 else (0, 0)
        self.op("QuantizedMatMulWithBias" + after, Inputs().add(a, tf.quint8).add(b, tf.qint8).add(bias, bias_type).range(*ranges),
                tolerance=tolerance, T1=tf.quint8, T2=tf.qint8, Toutput=result, input_quant_mode=mode, **types)

    def draw(self):
        """Axes from the front, quint8 from 0 on, one range of qint8 symmetric: else what TensorFlow does hangs on the shapes."""
        for self.known in (True, False):
            for dtype in (tf.quint8, tf.qint8):
                for _ in range(40):
                    shape, n = self.shape(1), self.random.randint(2, 4)
                    axis = self.random.randrange(len(shape))
                    shapes = [shape[:axis] + (self.random.randint(1, 3),) + shape[axis + 1:] for _ in range(n)]
                    tops = [self.random.choice([1.0, 6.0, 255.0, self.random.uniform(.1, 9)]) for _ in range(n)]
                    if self.random.random() < .3:
                        tops = tops[:1] * n
                    lowest = {tf.quint8: lambda top: 0.0, tf.qint8: lambda top: -top if len(set(tops)) == 1 else self.random.uniform(-top, 0)}
                    self.concat(dtype, axis, shapes, [(lowest[dtype](top), top) for top in tops])
                for after in ("", "AndRelu", "AndRequantize", "AndReluAndRequantize", "AndDequantize"):
                    for mode in ("MIN_FIRST", "SCALED"):
                        for bias in (tf.float32,) if after == "AndRelu" else (tf.float32, tf.qint32):
                            for _ in range(3):
                                self.matmul(after, mode, bias)
                for axis, shapes in ((4, [(1, 2, 2, 2)] * 2), (1, [(2, 2), (3, 2)]), (0, [(2,), (2, 1)])):
                    self.concat(dtype, axis, shapes, [(0.0, 1.0)] * 2)
        return self.cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("out")
    options = parser.parse_args()
    recorder, recorded = Recorder(), []
    for case in OneDnnCases(options.seed).draw():
        done = recorder(case)
        if done is None:
            print(f"{case.name}: TensorFlow dies, or the client refuses")
        elif any(step.error in ("ABORTED", "INTERNAL") for step in done.step):  # oneDNN refuses what TensorFlow makes of it.
            print(f"{case.name}: TensorFlow fails")
        else:
            recorded.append(done)
    write(options.out, recorded)


if __name__ == "__main__":
    sys.exit(main())
