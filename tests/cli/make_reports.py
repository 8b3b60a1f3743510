#!/usr/bin/python3
"""Made-up pathology reports, as tables of texts with the columns id, patient, label and text.

    make_reports.py FOLDER [PATIENTS]

Writes train.csv, val.csv and test.csv of other patients each. The label is the type of tumour: it is in what is
described, never in a heading, and words of other types occur (history, differential diagnosis). Two types of kidney
differ in a few words only. No real report is in it, and none was looked at to make it.
"""
import csv
import os
import random
import sys

ORGANS = {
    "breast": ("left breast, lumpectomy", "right breast, core biopsy", "breast, mastectomy"),
    "colon": ("sigmoid colon, resection", "caecum, polypectomy", "right hemicolectomy"),
    "lung": ("right upper lobe, lobectomy", "lung, wedge resection", "bronchial biopsy"),
    "prostate": ("prostate, radical prostatectomy", "prostate, needle biopsies", "transurethral resection"),
    "kidney_clear": ("left kidney, nephrectomy", "renal mass, partial nephrectomy"),
    "kidney_papillary": ("left kidney, nephrectomy", "renal mass, partial nephrectomy"),
}
FINDINGS = {
    "breast": ("invasive ductal carcinoma with tubule formation", "oestrogen receptor is positive in most nuclei",
               "associated ductal carcinoma in situ, comedo type", "lobular carcinoma in single files"),
    "colon": ("adenocarcinoma arising in a tubulovillous adenoma", "glands with dirty necrosis invade the muscularis",
              "infiltrates the pericolic fat", "crypt architecture is distorted beside the tumour"),
    "lung": ("acinar adenocarcinoma with lepidic spread", "squamous carcinoma with keratin pearls",
             "tumour cells are positive for TTF-1", "visceral pleura is not invaded, alveoli are anthracotic"),
    "prostate": ("acinar adenocarcinoma, Gleason score 3 + 4", "perineural invasion beside the seminal vesicle",
                 "basal cells are absent on p63", "Gleason pattern 4 with cribriform glands"),
    "kidney_clear": ("nests of cells with clear cytoplasm and a delicate vascular net", "CAIX is diffusely positive",
                     "golden yellow tumour of the cortex with haemorrhage"),
    "kidney_papillary": ("fibrovascular cores with foamy macrophages", "CK7 is diffusely positive, CAIX is negative",
                         "brown, friable tumour with a pseudocapsule"),
}
COMMON = ("margins are free of tumour", "{n} lymph nodes without metastasis", "the largest diameter is {n} mm",
          "the specimen was fixed in formalin", "sections were stained with H&E", "no lymphovascular invasion is seen",
          "inked in {n} colours and sliced", "the patient is {n} years old", "necrosis is present in {n} % of the area")
OTHER = ("history of {o}", "differential diagnosis: {o}", "compared with a previous specimen: {o}")


def report(label, random):
    sentences = random.sample(COMMON, random.randint(2, 6)) + random.sample(FINDINGS[label], 2)
    if random.random() < 0.5:
        other = random.choice([name for name in ORGANS if name != label])
        sentences.append(random.choice(OTHER).format(o=random.choice(ORGANS[other]), n="{n}"))
    random.shuffle(sentences)
    text = ". ".join(s.replace("{n}", str(random.randint(2, 90))).capitalize() for s in sentences)
    return f"Specimen: {random.choice(ORGANS[label])}.\nMicroscopy: {text}."


def main():
    folder, patients = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 240
    draw, row = random.Random(22), 0
    streams = {side: open(os.path.join(folder, side + ".csv"), "w", newline="") for side in ("train", "val", "test")}
    tables = {side: csv.writer(stream) for side, stream in streams.items()}
    for table in tables.values():
        table.writerow(["id", "patient", "label", "text"])
    for patient in range(patients):
        side = ("train", "train", "train", "val", "test")[patient % 5]
        label = list(ORGANS)[patient // 5 % len(ORGANS)]
        for _ in range(draw.randint(1, 2)):
            tables[side].writerow([f"R{row:04}", f"P{patient:03}", label, report(label, draw)])
            row += 1
    for stream in streams.values():
        stream.close()


main()
