# Where a network is cut into stages: the table and the JSON, counted so that they are the same everywhere; layers
# that the user names; a limit of memory; what is measured; and what is refused.
cut() { microtome model cut --count "$@"; }
echo "--- table"
cut --network resnet110_v2 --size 1024 --stages 4
cut --network scan_tiny --batch 8 --at layer2,layer3.0
cut --network scan_tiny --batch 8 --stages 3 --at layer2,layer3.0 | tail -n 1
cut --network scan_tiny --stages 1 | tail -n 3
cut --model $SOURCE/tests/golden/onnx_scores/softmax.onnx --stages 2 | tail -n 4

echo "--- JSON"
cut --network resnet110_v2 --size 64 --stages 4 --json >four.json
cut --network googlenet --at inception3a,inception4c --json >three.json
microtome model list --json >list.json
python3 - <<'P'
import json
listed = {row["network"]: row["parameters"] for row in json.load(open("list.json"))}
for name in "four", "three":
    a = json.load(open(name + ".json"))
    s = a["stages"]
    times = [x["forward_s"] + x["backward_s"] for x in s]
    print(a["network"], a["input"], a["times"], len(s), [x["stage"] for x in s], s[0]["first"], s[-1]["last"])
    print("parameters", sum(x["parameters"] for x in s) == a["parameters"] == listed[a["network"]])
    print("sent", sum(t["bytes"] for x in s for t in x["sent"]) == sum(x["sent_bytes"] for x in s),
          [[t["to"] for t in x["sent"]] for x in s])
    print("received", [x["input_bytes"] == sum(t["bytes"] for y in s for t in y["sent"] if t["to"] == x["stage"])
                       for x in s[1:]])
    print("balance", abs(a["slowest_to_mean"] - max(times) * len(s) / sum(times)) < 1e-9,
          times.index(max(times)) + 1 == a["slowest"], a["slowest_to_mean"] < 1.1)
    print("cut", a["cut"] == [x["last"] for x in s[:-1]], sum(x["nodes"] for x in s))
P
# what it names is what --at takes
cut --network resnet110_v2 --size 64 --stages 4 >four
cut --network resnet110_v2 --size 64 --at "$(sed -n 's/.*cut: \[\(.*\)\].*/\1/p' four | tr -d ' ')" | cmp - four && echo the same

echo "--- memory"
need=$(python3 -c 'import json; print(max(x["activation_bytes"] for x in json.load(open("four.json"))["stages"]) // 1000000)')
cut --network resnet110_v2 --size 64 --stages 4 --memory-mb "$need" --json |
    python3 -c 'import json, sys; print(max(x["activation_bytes"] for x in json.load(sys.stdin)["stages"]) <= 1e6 * int(sys.argv[1]))' "$need"

echo "--- measured"
microtome model cut --network scan_tiny --stages 2 --threads 1 --json >measured.json
python3 - <<'P'
import json
a = json.load(open("measured.json"))
print(a["times"], a["measured_px"], a["threads"], all(x["forward_s"] > 0 and x["backward_s"] > 0 for x in a["stages"]))
P
microtome model cut --network scan_tiny --stages 2 --threads 1 | sed -n '1p;$p' | sed 's/cut: .*/cut: ../'
microtome model cut --network scan_tiny --size 4000 --stages 2 --memory-mb 540 --threads 1 >scaled
sed -n 's/\(.* scaled from\) [0-9]* px/\1 .. px/p' scaled

# a weight that two layers use, by hand: a file of ONNX is fields of (number, type, bytes)
python3 - <<'P'
import struct


def number(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)


def field(i, value):
    if isinstance(value, int):
        return number(8 * i) + number(value)
    value = value if isinstance(value, bytes) else value.encode()
    return number(8 * i + 2) + number(len(value)) + value


def tensor(name, dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def conv(x, y):
    return field(1, x) + field(1, "w") + field(2, y) + field(3, y) + field(4, "Conv")


w = field(1, 3) + field(1, 3) + field(1, 1) + field(1, 1) + field(2, 1) + field(8, "w") + \
    field(9, struct.pack("<9f", *[0.1] * 9))
graph = field(1, conv("x", "a")) + field(1, conv("a", "b")) + field(1, conv("b", "y")) + field(2, "twice") + \
    field(5, w) + field(11, tensor("x", (1, 3, 8, 8))) + field(12, tensor("y", (1, 3, 8, 8)))
open("twice.onnx", "wb").write(field(1, 7) + field(7, graph) + field(8, field(1, "") + field(2, 13)))
P
echo "--- refused"
try() { "$@" >/dev/null; echo "exit $?"; }
{
    try cut --network scan_tiny
    try cut --network scan_tiny --stages 65
    try cut --network scan_tiny --stages 60
    try cut --network scan_tiny --at layr2
    try cut --network scan_tiny --at layer2,layer3.1.conv1,layer3.0
    try cut --network scan_tiny --at layer2,layer2
    try cut --network scan_tiny --at fc
    try cut --network scan_tiny --at input
    try cut --network scan_tiny --at layer2,
    try cut --network scan_tiny --at layer3.0.conv1.weight
    try cut --network scan_tiny --stages 4 --at layer2
    try cut --network scan_tiny --norm ws --at layer3.0.conv1.standardized
    try cut --model twice.onnx --at a
    try cut --model twice.onnx --stages 2
    try cut --network resnet110_v2 --size 512 --stages 4 --memory-mb 100
    try cut --network resnet110_v2 --size 512 --at layer1 --memory-mb 1000
    try cut --network scan_tiny --stages 2 more
    try cut --stages 2
} 2>&1
