"""write_cifar.py FOLDER: writes files of CIFAR-10's binary form with pictures of Fashion-MNIST: five with 400 training
images each and one with 500 test images. Channels differ: the picture, its inverse, and its mirror image."""

import gzip
import os
import sys

SOURCE = "/usr/share/datasets/fashion-mnist"
SIDE, BORDER = 28, 2


def read(part, header, name):
    with gzip.open(f"{SOURCE}/{part}-{name}.gz") as file:
        return file.read()[header:]


def channels(image):
    rows = [image[i : i + SIDE] for i in range(0, len(image), SIDE)]
    for turned in (rows, [bytes(255 - p for p in row) for row in rows], [row[::-1] for row in rows]):
        blank = bytes(SIDE + 2 * BORDER)
        framed = [bytes(BORDER) + row + bytes(BORDER) for row in turned]
        yield b"".join([blank] * BORDER + framed + [blank] * BORDER)


def write(path, part, begin, end):
    pixels, labels = read(part, 16, "images-idx3-ubyte"), read(part, 8, "labels-idx1-ubyte")
    with open(path, "wb") as file:
        for i in range(begin, end):
            file.write(labels[i : i + 1])
            file.writelines(channels(pixels[i * SIDE * SIDE : (i + 1) * SIDE * SIDE]))


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for k in range(5):
    write(f"{folder}/data_batch_{k + 1}.bin", "train", 400 * k, 400 * (k + 1))
write(f"{folder}/test_batch.bin", "t10k", 0, 500)
