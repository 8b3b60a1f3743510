#!/usr/bin/env python3
"""audio.py: writes audio.json: WAV files with the samples that soundfile reads from them, sound resampled by torchaudio,
and log-mel frames of librosa. Numbers in double precision. Needs soundfile, librosa, torch and torchaudio; written with
librosa 0.11.0, torchaudio 2.11.0 and soundfile 0.14.0."""
import io
import json
import pathlib
import librosa
import numpy as np
import soundfile
import torch
import torchaudio

HERE = pathlib.Path(__file__).parent
FORMATS = [("WAV", "PCM_U8", 1), ("WAV", "PCM_16", 1), ("WAV", "PCM_24", 1), ("WAV", "PCM_32", 1), ("WAV", "FLOAT", 1),
           ("WAV", "PCM_16", 2), ("WAV", "FLOAT", 2), ("WAVEX", "PCM_24", 2), ("WAVEX", "FLOAT", 1)]


def sound(n, rate, seed):
    """Something like a voice: harmonics of a tone that rises, in noise, with silence in it. Whole numbers of 16 bits."""
    time = np.arange(n) / rate
    phase = 2 * np.pi * (110 * time + 200 * time ** 2)
    x = sum(np.sin(k * phase + k) / k for k in range(1, 30)) * np.exp(-((time * rate / n - 0.4) / 0.3) ** 2)
    x += 0.05 * np.random.default_rng(seed).standard_normal(n)
    x[2 * n // 3:2 * n // 3 + n // 6] = 0
    return np.round(x / np.abs(x).max() * 30000).astype(np.int16)


def make_format(kind, subtype, channels):
    x = np.random.default_rng(channels).uniform(-1, 1, (37, channels))
    x[:2] = [[-1.0] * channels, [0.999999] * channels]
    file = io.BytesIO()
    soundfile.write(file, x, 11025, format=kind, subtype=subtype)
    samples, rate = soundfile.read(io.BytesIO(file.getvalue()), always_2d=True)
    return {"name": f"{kind} {subtype} {channels}", "file": file.getvalue().hex(), "rate": rate,
            "samples": samples.mean(1).tolist()}


def resample(x, rate, to):
    y = torchaudio.functional.resample(torch.from_numpy(x), rate, to, lowpass_filter_width=16, rolloff=0.94)
    return y.numpy()


def mel(x):
    power = librosa.feature.melspectrogram(y=x, sr=16000, n_fft=400, hop_length=160, n_mels=80, dtype=np.float64)
    return np.log(np.maximum(power, 1e-10)).T


def rounded(values):
    return [float("%.8g" % value) for value in np.asarray(values).ravel()]


def main():
    resampled = []
    for rate, n in ((22050, 1500), (44100, 1200), (8000, 400), (48000, 999), (16000, 50), (11127, 300)):
        x = sound(n, rate, rate)
        resampled.append({"rate": rate, "x": x.tolist(), "y": rounded(resample(x / 32768.0, rate, 16000))})
    x = sound(3300, 16000, 7)
    voice = sound(4000, 22050, 8)
    frames = mel(resample(voice / 32768.0, 22050, 16000))
    frames = (frames - frames.mean(0)) / frames.std(0)
    file = io.BytesIO()
    soundfile.write(file, voice, 22050, format="WAV", subtype="PCM_16")
    (HERE / "audio.json").write_text(json.dumps({
        "formats": [make_format(*f) for f in FORMATS], "resampled": resampled,
        "mel": {"x": x.tolist(), "y": rounded(mel(x / 32768.0))},
        "frames": {"file": file.getvalue().hex(), "y": rounded(frames)}}))


main()
