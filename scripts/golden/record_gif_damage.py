#!/usr/bin/env python3
"""scripts/golden/record_gif_damage.py > tests/kernels/image/testdata/gif_damage.txt

What TensorFlow 2.21's DecodeGif makes of the small GIFs in tests/fuzz/corpus/image_fuzz with one byte altered: a line
for each, with the file, the byte, what it is changed by (exclusive or), and the result: its shape and the CRC-32 of its
pixels, or "error".
"""

import os
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

for name in ("gif_interlaced", "gif_partial", "gif_transparent"):
    with open(os.path.join("tests/fuzz/corpus/image_fuzz", name), "rb") as file:
        whole = file.read()[1:]
    for at in range(len(whole)):
        for change in (0x01, 0x80, 0xFF):
            altered = bytearray(whole)
            altered[at] ^= change
            try:
                image = tf.raw_ops.DecodeGif(contents=bytes(altered)).numpy()
                result = "x".join(map(str, image.shape)) + f" {zlib.crc32(image.tobytes()):08x}"
            except tf.errors.InvalidArgumentError:
                result = "error"
            print(name, at, f"{change:02x}", result)
