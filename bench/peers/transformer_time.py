"""The peers of Transformers: PyTorch 2 eager and compiled, and ONNX Runtime and OpenVINO on what PyTorch exports.

    transformer_time.py NETWORK BATCH THREADS REPEATS eager|compiled|train|onnxruntime|openvino FOLDER

NETWORK is small, base or large (ViT of 224 x 224 px in patches of 16) or text (BERT-base, 512 tokens). Prints the best
milliseconds of a forward pass or, for train, of forward and backward. ONNX files are kept in FOLDER.
"""
import os
import sys

import torch
from torch import nn

from timing import best_ms

network, batch, threads, repeats, peer, folder = sys.argv[1], *map(int, sys.argv[2:5]), *sys.argv[5:7]
torch.set_num_threads(threads)
width, depth = {"small": (384, 12), "base": (768, 12), "large": (1024, 24), "text": (768, 12)}[network]
text = network == "text"
TOKENS, WORDS = 512, 30522


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, width // 64, 64).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(n, t, width))

    def mlp(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(x)))

    def forward(self, x):
        if text:  # normalised behind each part, as in BERT
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.mlp(x))
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        tokens = TOKENS if text else 197
        self.embed = nn.Embedding(WORDS, width) if text else nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 2 if text else 1000)

    def forward(self, x):
        x = self.embed(x)
        if not text:
            x = torch.cat([self.first.expand(batch, -1, -1), x.flatten(2).transpose(1, 2)], 1)
        x = x + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


torch.manual_seed(1)
model = Network().train(peer == "train")
data = torch.randint(WORDS, (batch, TOKENS)) if text else torch.randn(batch, 3, 224, 224)


def exported():
    path = os.path.join(folder, f"torch_{network}_b{batch}.onnx")
    if not os.path.exists(path):
        torch.onnx.export(model, (data,), path + ".part", opset_version=17, dynamo=False, input_names=["input"])
        os.rename(path + ".part", path)
    return path


def prepare():
    """A function that runs the network once."""
    if peer == "onnxruntime":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(exported(), options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {"input": data.numpy()})
    if peer == "openvino":
        import openvino
        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"})
        compiled = core.compile_model(exported(), "CPU", {"PERFORMANCE_HINT": "LATENCY"})
        request = compiled.create_infer_request()
        return lambda: request.infer({0: data.numpy()})
    if peer == "train":
        labels = torch.zeros(batch, dtype=torch.long)

        def train():
            model.zero_grad()
            nn.functional.cross_entropy(model(data), labels).backward()
        return train
    run = torch.compile(model) if peer == "compiled" else model

    def infer():
        with torch.inference_mode():
            run(data)
    return infer


step = prepare()
print(best_ms(step, repeats))
