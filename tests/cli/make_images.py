"""make_images.py N LIGHT FOLDER SEED: images of 144 px in random colours, of 6 patients and with random labels in
their names, LIGHT added to every pixel: nothing can be learnt from them but themselves."""
import os
import random
import struct
import sys
import zlib

SIDE, BLOCK = 144, 12


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def row(rng, light):
    """Of blocks of one colour each, BLOCK rows high."""
    line = b"".join(bytes(rng.randrange(40, 200) + light for _ in range(3)) * BLOCK for _ in range(SIDE // BLOCK))
    return (b"\0" + line) * BLOCK


n, light, folder, seed = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
os.makedirs(folder, exist_ok=True)
for i in range(n):
    rng = random.Random(seed * 100000 + i)
    pixels = b"".join(row(rng, light) for _ in range(SIDE // BLOCK))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    with open(f"{folder}/{i % 6 + 1}_idx5_x{i}_y{seed}_class{rng.randrange(2)}.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels, 1)) +
                   chunk(b"IEND", b""))
