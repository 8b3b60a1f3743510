#!/usr/bin/env python3
"""Short diagnoses as a pathologist dictates them, spoken by espeak-ng (Debian) in many voices: does a network that has
never heard a voice know what it says?

    bench/study_dictation.py BUILD FOLDER [PART ...] [--threads 2] [--seed 1] [--config examples/dictation.yaml]

Parts, in this order if none is named: corpus, train, scores. FOLDER gets train.csv, val.csv and test.csv (file, label,
speaker, accent, wording), the recordings in wav/, the training in run/ and the scores in scores/. Eight diagnoses have
five wordings each. A voice is a variant of espeak-ng; its accent, speed and pitch change from recording to recording.
Voices of val.csv and test.csv are not in train.csv; the fifth wording of a diagnosis is in test.csv alone and is
counted by itself. Nothing but espeak-ng and Python is needed.
"""
import argparse
import csv
import os
import random
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

DIAGNOSES = {
    "adenocarcinoma": [
        "Biopsy of the colon: moderately differentiated adenocarcinoma.",
        "Sigmoid colon, adenocarcinoma invading the submucosa.",
        "Fragments of an invasive adenocarcinoma of the large bowel.",
        "Rectum, biopsy. Adenocarcinoma.",
        "In the colon there is a poorly differentiated adenocarcinoma.",
    ],
    "squamous": [
        "Biopsy of the lung: keratinizing squamous cell carcinoma.",
        "Left bronchus, squamous cell carcinoma.",
        "Fragments of an invasive squamous cell carcinoma.",
        "Tongue, biopsy. Squamous cell carcinoma, well differentiated.",
        "In the lung there is a poorly differentiated squamous cell carcinoma.",
    ],
    "in_situ": [
        "Biopsy of the breast: ductal carcinoma in situ.",
        "Left breast, ductal carcinoma in situ of high grade.",
        "Fragments with ductal carcinoma in situ, not invasive.",
        "Breast, core biopsy. Ductal carcinoma in situ with necrosis.",
        "In the breast there is ductal carcinoma in situ.",
    ],
    "melanoma": [
        "Biopsy of the skin: malignant melanoma.",
        "Left shoulder, superficial spreading melanoma.",
        "Fragments of an invasive melanoma with ulceration.",
        "Skin, excision. Nodular melanoma.",
        "In the skin there is a malignant melanoma, completely excised.",
    ],
    "renal": [
        "Biopsy of the kidney: clear cell renal carcinoma.",
        "Left kidney, clear cell renal cell carcinoma, grade two.",
        "Fragments of a renal cell carcinoma of clear cell type.",
        "Kidney, partial resection. Renal cell carcinoma.",
        "In the kidney there is a clear cell renal carcinoma.",
    ],
    "thyroid": [
        "Biopsy of the thyroid: papillary carcinoma.",
        "Left thyroid lobe, papillary thyroid carcinoma.",
        "Fragments of a papillary carcinoma of the thyroid.",
        "Thyroid, fine needle biopsy. Papillary carcinoma.",
        "In the thyroid there is a papillary carcinoma, completely excised.",
    ],
    "lymphoma": [
        "Biopsy of a lymph node: diffuse large B cell lymphoma.",
        "Left axilla, lymphoma of large B cells.",
        "Fragments of a lymph node with follicular lymphoma.",
        "Lymph node, biopsy. Hodgkin lymphoma.",
        "In the lymph node there is a large B cell lymphoma.",
    ],
    "benign": [
        "Biopsy of the colon: normal mucosa, no malignancy.",
        "Left breast, benign tissue without atypia.",
        "Fragments of benign tissue. No evidence of malignancy.",
        "Skin, excision. Benign naevus.",
        "In the lung there is no evidence of malignancy.",
    ],
}
SPOKEN_ONCE = 4  # this wording is in test.csv alone

VOICES = {
    "train": ["m1", "m3", "m4", "m5", "m7", "m8", "f1", "f2", "f4", "klatt", "klatt3", "adam", "Alex", "Andy",
              "belinda", "david", "edward", "Gene", "john", "linda", "Mike", "paul", "steph", "zac"],
    "val": ["m2", "f5", "klatt2", "Annie"],
    "test": ["m6", "f3", "klatt4", "Andrea", "travis", "anika"],
}
ACCENTS = ["en-gb", "en-us", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-us-nyc"]


def speak(folder, name, sentence, voice, accent, speed, pitch):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        subprocess.run(["espeak-ng", "-v", f"{accent}+{voice}", "-s", str(speed), "-p", str(pitch), "-w",
                        path + ".part", sentence], check=True)
        os.rename(path + ".part", path)


def corpus(folder, seed, takes=1, diagnoses=None, voices=None):
    """One table for each side; takes: recordings of every wording by every voice for training."""
    os.makedirs(os.path.join(folder, "wav"), exist_ok=True)
    for side, speakers in (voices or VOICES).items():
        draw = random.Random(f"{seed} {side}")
        with open(os.path.join(folder, side + ".csv"), "w", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(["file", "label", "speaker", "accent", "wording"])
            for voice in speakers:
                for label in diagnoses or DIAGNOSES:
                    for wording, sentence in enumerate(DIAGNOSES[label]):
                        if wording == SPOKEN_ONCE and side != "test":
                            continue
                        for take in range(takes if side == "train" else 1):
                            accent = draw.choice(ACCENTS)
                            speed, pitch = draw.randrange(130, 191), draw.randrange(30, 71)
                            name = f"wav/{side}-{voice}-{label}-{wording}-{take}.wav"
                            speak(folder, name, sentence, voice, accent, speed, pitch)
                            table.writerow([name, label, voice, accent, wording])


def count(rows, right):
    return f"{sum(right[i] for i in rows)} of {len(rows)}, {sum(right[i] for i in rows) / len(rows):.3f}"


def report(folder):
    """Accuracy on the test voices: all, wordings of the training and others, voice by voice, class by class."""
    with open(os.path.join(folder, "test.csv"), newline="") as stream:
        table = list(csv.DictReader(stream))
    with open(os.path.join(folder, "scores", "scores.csv"), newline="") as stream:
        scores = list(csv.DictReader(stream))
    names = [name for name in scores[0] if name.startswith("score_")]
    right = ["score_" + row["label"] == max(names, key=lambda name: float(score[name]))
             for row, score in zip(table, scores)]
    known = [i for i, row in enumerate(table) if int(row["wording"]) != SPOKEN_ONCE]
    print("wordings of the training:", count(known, right))
    print("wordings never heard:", count([i for i in range(len(table)) if i not in known], right))
    for column in ("speaker", "label"):
        for value in dict.fromkeys(row[column] for row in table):
            print(f"  {column} {value}:", count([i for i in known if table[i][column] == value], right))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("folder", type=os.path.abspath, metavar="FOLDER")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--config", default=os.path.join(ROOT, "examples", "dictation.yaml"))
    parser.add_argument("--set", action="append", default=[], help="a setting of the config")
    given = parser.parse_args()
    program = os.path.join(os.path.abspath(given.build), "microtome")
    run, scores = os.path.join(given.folder, "run"), os.path.join(given.folder, "scores")
    for part in given.parts or ["corpus", "train", "scores"]:
        if part == "corpus":
            corpus(given.folder, given.seed)
        elif part == "train":
            settings = [f"data.{side}={given.folder}/{side}.csv" for side in ("train", "val")] + given.set
            subprocess.run([program, "train", given.config, "-o", run, "--threads", given.threads]
                           + [word for setting in settings for word in ("--set", setting)], check=True)
        elif part == "scores":
            subprocess.run([program, "predict", os.path.join(given.folder, "test.csv"), "--model", run, "-o", scores,
                            "--overwrite", "--threads", given.threads], check=True)
            report(given.folder)
        else:
            parser.error(f"no part {part}")


if __name__ == "__main__":
    main()
