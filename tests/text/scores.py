#!/usr/bin/env python3
"""The scores of a trained model of texts against Hugging Face's transformers (PyPI: torch, transformers, tokenizers).

    scores.py RUN TABLE SCORES      RUN: folder of 'microtome train' with bert_*, long: truncate and a vocab.txt;
                                    SCORES: scores.csv of 'microtome predict TABLE --model RUN'

Tokenizer, network and softmax are theirs; vocabulary and weights are ours, read under their own names. Prints the
largest difference of a score, and fails above 1e-5."""
import csv
import json
import os
import sys

import torch
from safetensors.torch import load_file
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertForSequenceClassification

SIZES = {"bert_tiny": (128, 2), "bert_mini": (256, 4), "bert_small": (512, 4), "bert_base": (768, 12)}


def main():
    run, table, scores = sys.argv[1:]
    card = json.load(open(os.path.join(run, "config.json")))
    own = card["microtome"]
    assert own["text"]["long"] == "truncate"
    weights = load_file(os.path.join(run, "model.safetensors"))
    tokenizer = BertWordPieceTokenizer(os.path.join(run, own["text"]["tokenizer"]), lowercase=True)
    tokenizer.enable_truncation(own["text"]["max_tokens"])
    width, depth = SIZES[own["network"]]
    model = BertForSequenceClassification(BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=width, num_hidden_layers=depth,
        num_attention_heads=width // 64, intermediate_size=4 * width, num_labels=card["num_classes"]))
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and not [name for name in missing if "position_ids" not in name], (missing, unexpected)
    model.eval()
    worst, n = 0.0, 0
    with torch.no_grad():
        for row, kept in zip(csv.DictReader(open(table, newline="")), csv.DictReader(open(scores, newline=""))):
            ids = torch.tensor([tokenizer.encode(row[own["text"]["column"]]).ids])
            found = model(input_ids=ids).logits.softmax(1)[0]
            ours = torch.tensor([float(kept["score_" + name]) for name in card["class_names"]])
            worst, n = max(worst, float((found - ours).abs().max())), n + 1
    print("%d texts: scores differ by at most %.1e" % (n, worst))
    sys.exit(n == 0 or worst > 1e-5)


main()
