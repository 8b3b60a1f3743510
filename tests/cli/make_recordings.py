#!/usr/bin/env python3
"""make_recordings.py FOLDER: tables of recordings, train.csv, val.csv and test.csv (id, speaker, label, file), and their
WAV files: tones that rise, fall or stay. A speaker has a pitch and a kind of file; none is in two tables."""
import csv
import math
import os
import random
import sys
import wave

RATES, BYTES = (8000, 16000, 22050, 11025), (2, 1, 3, 2)


def write(path, values, rate, width, channels):
    data = bytearray()
    for value in values:
        whole = round(value * (2 ** (8 * width - 1) - 1)) + (128 if width == 1 else 0)
        data += whole.to_bytes(width, "little", signed=width > 1) * channels
    with wave.open(path, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(bytes(data))


def tone(draw, label, pitch, rate):
    seconds = draw.uniform(0.3, 0.5)
    bend = {"rise": 1, "fall": -1, "stay": 0}[label] * draw.uniform(0.7, 1)
    phase, values = draw.uniform(0, 6), []
    for i in range(int(seconds * rate)):
        hz = pitch * 2 ** (bend * (i / rate / seconds - 0.5))
        phase += 2 * math.pi * hz / rate
        values.append(0.4 * math.sin(phase) + 0.2 * math.sin(2 * phase) + draw.gauss(0, 0.01))
    return values


def main(folder):
    os.makedirs(os.path.join(folder, "wav"), exist_ok=True)
    for side, speakers in (("train", range(8)), ("val", range(8, 10)), ("test", range(10, 14))):
        with open(os.path.join(folder, side + ".csv"), "w", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(["id", "speaker", "label", "file"])
            for speaker in speakers:
                draw = random.Random(speaker)
                pitch, rate, width = draw.uniform(300, 900), RATES[speaker % 4], BYTES[speaker % 4]
                for take in range(2):
                    for label in ("rise", "fall", "stay"):
                        name = f"wav/s{speaker}-{label}-{take}.wav"
                        write(os.path.join(folder, name), tone(draw, label, pitch, rate), rate, width,
                              1 + speaker % 2)
                        table.writerow([f"R{speaker}{label[0]}{take}", f"s{speaker}", label, name])


main(sys.argv[1])
