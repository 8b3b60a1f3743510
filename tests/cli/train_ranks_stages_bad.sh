# Networks in stages: what cannot be is refused by name, before or after the network is built; a patch that cannot be
# read on the way ends all ranks with one message.
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 1, batch: 2, accumulate: 2 }
parallel: { stages: 2 }
Y
try() {
    timeout 60 microtome train run.yaml -q --threads 1 -o out "$@" >/dev/null 2>err.txt
    echo "$*: exit $?"
    grep -q 'no MPI' err.txt && exit 77
    grep '^microtome' err.txt | sed 's/p[0-9]_idx5_x[0-9]*_y1_class[01]/NAME/'
}
try
try --ranks 3
try --set parallel.stages=65
try --ranks 2 --set parallel.schedule=mast --set train.batch=3 --set train.accumulate=1
try --ranks 2 --set parallel.schedule=master --set train.accumulate=3
try --ranks 2 --set parallel.schedule=gpipe --set parallel.times=2
try --ranks 2 --set parallel.micro_batch=3
try --ranks 2 --set ranks.compress=true
try --ranks 2 --set ranks.shard_optimizer=true
try --ranks 2 --set train.memory=recompute
try --ranks 2 --set train.store=bf16 --set parallel.recompute=true
try --ranks 2 --set data.slides=cohort/slides.csv --set data.train=[]
try --ranks 2 --set parallel.cut='[stem,layer2]'
try --ranks 2 --set parallel.cut='[stme]'
try --ranks 2 --set parallel.cut='[fc]'
try --ranks 2 --set parallel.cut='[conv1.weight]'
try --ranks 3 --set parallel.stages=3 --set parallel.cut='[layer3,stem]'
try --ranks 2 --set network.norm=ws --set parallel.cut='[conv1.standardized]'
echo "--- an image that breaks on the way"
/usr/bin/python3 - <<'P'
import os, random, struct, zlib
draw = random.Random(1)
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
os.mkdir("images")
for i in range(24):
    rows = b"".join(b"\0" + draw.randbytes(3 * 144) for _ in range(144))
    image = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 144, 144, 8, 2, 0, 0, 0)) +
             chunk(b"IDAT", zlib.compress(rows)[:3000 if i > 15 else None]) + chunk(b"IEND", b""))
    open("images/p%d_idx5_x%02d_y1_class%d.png" % (i % 4, i, i // 4 % 2), "wb").write(image)
P
for schedule in 1f1b master; do
    try --ranks 2 --set data.train=images --set data.spacing_um_px=0.5 --set data.val_fraction=0.25 --set parallel.schedule=$schedule \
        --set train.epochs=4
done
