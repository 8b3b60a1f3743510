# What cannot be learnt from whole slides is refused: by the config, by the list, by the slides.
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 4 --centers 0 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
cat >run.yaml <<'Y'
network: { name: scan_tiny, norm: ws }
data: { slides: cohort/slides.csv, mpp: 1, val_fraction: 0.5 }
train: { epochs: 1, batch: 1, memory: stream }
Y
try() { # settings; the folder must not appear
    local settings=()
    for setting in "$@"; do settings+=(--set "$setting"); done
    microtome train run.yaml -o no -q "${settings[@]}"
    echo "exit $?"
    [ ! -e no/run.json ] || rm -r no
}
echo "--- config"
try data.train=cohort
try data.mpp=0
try data.long_side_px=500
try objective=segment
try data.resize_px=100
try augment.blur=0.5
try train.mixup=0.2
try train.tta=true
try train.memory=auto
try train.batch=32
try data.slides=[] data.train=cohort train.memory=plain
try data.slides=[] data.train=cohort data.mpp=0
echo "--- list"
try data.label=grade
try data.slides=cohort/slides
sed '3s/normal//;3s/tumor//' cohort/slides.csv >cohort/unlabelled.csv
try data.slides=cohort/unlabelled.csv
sed '3s/normal/odd/;3s/tumor/odd/' cohort/slides.csv >cohort/odd.csv
try data.slides=cohort/odd.csv 'classes=[normal, tumor, other]'
try data.slides=cohort/slides.csv data.val=cohort/slides.csv
try data.split=attribute data.slides=cohort/none.csv
cut -d, -f 1-7 cohort/slides.csv >cohort/unsplit.csv
try data.split=attribute data.slides=cohort/unsplit.csv
echo "--- slides"
python3 - <<'P'
import struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def write(name, rows): open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 800, 800, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
glass, tissue = b"\xf5" * 3, b"\xc0\x50\x90"
write("cohort/glass.png", (b"\0" + glass * 800) * 800)
write("cohort/slides/tissue.png", (b"\0" + glass * 200 + tissue * 400 + glass * 200) * 800)
P
{ cat cohort/slides.csv; echo "glass.png,0.25,normal,,glass,0,0,train"; } >cohort/glass.csv
try data.slides=cohort/glass.csv
{ cat cohort/slides.csv; echo "absent.tiff,0.25,normal,,absent,0,0,train"; } >cohort/absent.csv
try data.slides=cohort/absent.csv
echo "--- size"
try data.mpp=0.1
try data.mpp=0 data.long_side_px=20000
sed '1s/,mpp,/,was,/;2,$s/patient_001_node_1.tiff/tissue.png/' cohort/slides.csv >cohort/unknown.csv
try data.slides=cohort/unknown.csv
try data.mpp=8
try network.name=vit_small_patch16_224 network.norm=batch
try data.mpp=0 data.long_side_px=1500 network.name=vit_small_patch16_224 network.norm=batch
echo "--- memory and network"
try train.memory_mb=1 2>&1 | sed 's/the [0-9]* MB/the N MB/'
try network.norm=batch
