#!/usr/bin/env python3
"""text.py: writes text/vocab.txt, text/tokenizer.json and text/ids.json with PyPI's tokenizers: small vocabularies
learnt from sentences of made-up reports, and the ids of texts."""
import json
import pathlib
from tokenizers import ByteLevelBPETokenizer, BertWordPieceTokenizer

HERE = pathlib.Path(__file__).parent / "text"
CORPUS = ["Invasive ductal carcinoma of the left breast, grade 2, 14 mm.", "Renal cell carcinoma, clear cell type.",
          "Adenocarcinoma of the sigmoid colon; margins are free of tumour.", "No evidence of malignancy in 12 nodes.",
          "Papillary thyroid carcinoma, 3 µm sections — Müller's stain.", "The patient's specimen wasn't oriented."] * 3
TEXTS = CORPUS[:6] + [
    "", " ", "  two  spaces \n\nand lines\t ", "Größe 5µm — naïve café, ÅNGSTRÖM İstanbul", "x[SEP]y [MASK] <mask> z",
    "癌 carcinoma 肺癌 한국어 ﬁbrosis", "don't we'll I'M they've 'tis", "12.5x3,7 cm^2 (pT2a pN0(0/14))", "😀 tumour \u200b\u00ad!",
    "unpronounceable" * 9, "a\u0301 e\u0300 \u0130 \u1e9e \u00a0end ", "trailing   ", "٣٤ Ⅳ ½ ²"]


def main():
    HERE.mkdir(exist_ok=True)
    words = BertWordPieceTokenizer(lowercase=True)
    words.train_from_iterator(CORPUS, vocab_size=220, min_frequency=2, show_progress=False)
    words.save_model(str(HERE))
    words = BertWordPieceTokenizer(str(HERE / "vocab.txt"), lowercase=True)
    pairs = ByteLevelBPETokenizer()
    pairs.train_from_iterator(CORPUS, vocab_size=330, min_frequency=2, special_tokens=["<s>", "</s>", "<mask>"],
                              show_progress=False)
    pairs.save(str(HERE / "tokenizer.json"))
    cased = BertWordPieceTokenizer(str(HERE / "vocab.txt"), lowercase=False)
    (HERE / "ids.json").write_text(json.dumps({
        "texts": TEXTS, "wordpiece": [words.encode(t).ids for t in TEXTS], "cased": [cased.encode(t).ids for t in TEXTS],
        "bpe": [pairs.encode(t).ids for t in TEXTS]}))


main()
