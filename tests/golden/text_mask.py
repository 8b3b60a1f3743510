#!/usr/bin/env python3
"""Writes tests/golden/text/mask.json for tests/unit/test_text_mask.c: the losses of Hugging Face's BertForMaskedLM and
RobertaPreLayerNormForMaskedLM (float64) on sequences with masked tokens, and the norm and the dot product with drawn
numbers of the gradients of all parameters. Weights are drawn as for the zoo (zoo/make_zoo_golden.py), so none are stored.

    text_mask.py        (needs torch and transformers)
"""
import json
import os
import sys

import torch
import transformers

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "zoo"))
from make_zoo_golden import first_value, numbers  # noqa: E402

VOCABULARY, TOKENS, PLACES = 50, 16, 3
ROWS = [(16, [2, 7, 11]), (9, [4])]  # tokens that are seen; masked places


def network(before):
    kind = "RobertaPreLayerNorm" if before else "Bert"
    config = getattr(transformers, kind + "Config")(
        vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
        type_vocab_size=2, max_position_embeddings=514 if before else 512, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, layer_norm_eps=1e-12, pad_token_id=1 if before else 0,
        attn_implementation="eager")
    model = getattr(transformers, kind + "ForMaskedLM")(config).double().eval()
    with torch.no_grad():
        for key, value in model.named_parameters():  # tied ones once
            value.copy_(torch.from_numpy(first_value(key, tuple(value.shape), 1.0, False)).double())
    return model


def case(name, before):
    model, losses, rows = network(before), [], []
    for r, (length, places) in enumerate(ROWS):
        ids = [2] + [5 + (7 * i + 3 * r) % (VOCABULARY - 5) for i in range(length - 2)] + [3] + [4] * (TOKENS - length)
        labels = [-100] * TOKENS
        for place in places:
            labels[place] = ids[place]
            ids[place] = 4
        mask = [int(i < length) for i in range(TOKENS)]
        out = model(input_ids=torch.tensor([ids]), attention_mask=torch.tensor([mask]), labels=torch.tensor([labels]))
        losses.append(out.loss)
        rows.append({"ids": ids, "mask": mask, "places": places, "labels": [labels[p] for p in places]})
    total = sum(losses) / len(losses)
    total.backward()
    gradients = {}
    for key, value in model.named_parameters():
        g = value.grad.reshape(-1)
        dot = torch.dot(g, torch.from_numpy(numbers("dot:" + key, g.numel())).double())
        gradients[key] = [g.norm().item(), dot.item()]
    return {"network": name, "rows": rows, "losses": [loss.item() for loss in losses], "gradients": gradients}


cases = [case("bert_tiny", False), case("prenorm_tiny", True)]
with open(os.path.join(here, "text", "mask.json"), "w") as stream:
    json.dump({"vocabulary": VOCABULARY, "tokens": TOKENS, "places": PLACES, "cases": cases}, stream, indent=0)
    stream.write("\n")
