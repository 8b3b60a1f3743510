#!/usr/bin/env python3
"""Writes tests/golden/text/words.json for tests/unit/test_text_probe.c: what PyTorch and Hugging Face's transformers
(float64) give for weights of tokens: integrated gradients of a logit with respect to the embeddings of the tokens, by
Gauss-Legendre quadrature with 60 places, and the attention of the last layer. Weights of the networks are drawn as
for the zoo (zoo/make_zoo_golden.py), so none are stored.

    text_words.py        (needs torch and transformers)
"""
import json
import os
import sys

import numpy as np
import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "zoo"))
from make_zoo_golden import Case, first_value  # noqa: E402
from models import TEXTS  # noqa: E402

VOCABULARY, TOKENS, CLASSES = 50, 16, 3
CASES = {"bert_tiny": 0, "prenorm_tiny": 0, "t5_mini": 2}  # depth; 0: as it is


def network(name, depth):
    case = Case(name, name, 1, VOCABULARY, TOKENS, 1, CLASSES, 0, 0, 1.0, depth)
    model = TEXTS[name](case).double().eval()
    public = getattr(model, "public_name", lambda key: key)
    model.model.set_attn_implementation("eager")
    with torch.no_grad():
        for key, value in model.state_dict().items():
            drawn = first_value(public(key), tuple(value.shape), 1.0, False)
            value.copy_(torch.from_numpy(drawn).double())
    return model


def run(model, name, embedded, mask):
    """Logits [N, classes] and the attention of the last layer [N, heads, T, T]."""
    inner, many = model.model, mask.expand(len(embedded), -1)
    out = inner(inputs_embeds=embedded, attention_mask=many.long(), output_attentions=True)
    if name.startswith("t5"):
        x = out.last_hidden_state
        return model.classifier((x * many[..., None]).sum(1) / many.sum(1, keepdim=True)), out.attentions[-1]
    return out.logits, out.attentions[-1]


def case(name, depth):
    model, length, chosen = network(name, depth), 13, 1
    ids = torch.tensor([2] + [5 + (7 * i) % (VOCABULARY - 5) for i in range(length - 2)] + [3] + [0] * (TOKENS - length))
    mask = (torch.arange(TOKENS) < length).double()[None]
    own = torch.tensor([0 < i < length - 1 for i in range(TOKENS)])
    table = model.model.get_input_embeddings().weight.detach()
    text = table[ids]
    blank = torch.where(own[:, None], table[0], text)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    total = torch.zeros_like(text)
    for node, weight in zip((nodes + 1) / 2, weights / 2):
        x = (blank + node * (text - blank))[None].requires_grad_()
        logits, _ = run(model, name, x, mask)
        total += weight * torch.autograd.grad(logits[0, chosen], x)[0][0]
    with torch.no_grad():
        ends, maps = run(model, name, torch.stack([blank, text]), mask)
    rows = maps[1].mean(0)
    attention = rows[:length].mean(0) if name.startswith("t5") else rows[0]
    found = (total * (text - blank)).sum(1)
    print(name, "adds up but for", abs(found.sum() - (ends[1, chosen] - ends[0, chosen])).item(), "of", found.sum().item())
    return {"network": name, "depth": depth, "ids": ids.tolist(), "mask": mask[0].tolist(), "own": own.tolist(),
            "class": chosen, "logits": ends[1].tolist(), "baseline": ends[0, chosen].item(),
            "gradients": found.tolist(), "attention": attention.tolist()}


cases = [case(name, depth) for name, depth in CASES.items()]
with open(os.path.join(here, "text", "words.json"), "w") as stream:
    json.dump({"vocabulary": VOCABULARY, "tokens": TOKENS, "classes": CLASSES, "cases": cases}, stream, indent=0)
    stream.write("\n")
