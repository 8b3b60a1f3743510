# What results were made from is kept with them: a file that was changed is noticed, a copy, another
# time and another way to name it are not.
microtome phantom -q -o cohort --slides 2 --size 1024 --seed 1 || exit
microtome phantom -q -o other --slides 2 --size 1024 --seed 2 || exit
first=$(ls cohort/slides | head -n 1) second=$(ls cohort/slides | tail -n 1)
stem=${first%.*} stem2=${second%.*}
for name in $stem $stem2; do # every slide has one
    [ -f cohort/annotations/$name.xml ] || cp "$(ls cohort/annotations/*.xml | head -n 1)" cohort/annotations/$name.xml
done
png() { # NAME SHADE: a template of two stains
    /usr/bin/env python3 - "$1" "$2" <<'PY'
import struct, sys, zlib
name, shade = sys.argv[1], int(sys.argv[2])
rows = b""
for y in range(64):
    rows += b"\0" + b"".join(bytes(((x * 3 + y) % 120 + shade, (x + y * 2) % 90 + 40, 120 + (x * y) % 60))
                             for x in range(64))
def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
                       + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
}
states() { awk 'NR > 1 { print $NF }' | tr '\n' ' '; echo; }
said() { # hashes and sizes differ from run to run of the test's maker, not in kind
    sed -E 's/[0-9]+ bytes, hash [0-9a-f]{16}/N bytes, hash H/g; s/=[0-9]+:[0-9a-f]{16}/=N:H/g; s/[a-z_0-9]+\.tiff/SLIDE/; s/'"$stem"'/FIRST/g; s/'"$stem2"'/SECOND/g'
}
try() {
    "$@" 2>&1 >printed | said
    [ ! -s printed ] || states <printed
}

echo "--- extract: the same bytes however a slide is named, whatever its time, wherever it lies"
extract="microtome extract -q --random 4 --patch 64 --white 0.9 --annotations cohort/annotations"
$extract cohort/slides -o stores | states
$extract "$PWD/cohort/slides" --annotations "$PWD/cohort/annotations" -o absolute | states
cp -r cohort copy && touch -d 2001-01-01 copy/slides/* copy/annotations/*
(cd copy && microtome extract -q --random 4 --patch 64 --white 0.9 slides --annotations annotations -o ../copied) | states
for name in absolute copied; do cmp stores/$stem.h5 $name/$stem.h5; done
$extract copy/slides --annotations copy/annotations -o stores | states
echo "--- extract: an annotation, a template or a slide that changed"
annotation=$(ls cohort/annotations/$stem.*)
cp "$annotation" kept.annotation
sed -i 's/$/ /' "$annotation"
try $extract cohort/slides -o stores
try $extract cohort/slides -o stores --overwrite
cp kept.annotation "$annotation"
png template.png 90
$extract cohort/slides -o stained --stain reinhard --template template.png | states
cp template.png copy/template.png
$extract cohort/slides -o stained --stain reinhard --template copy/template.png | states
png template.png 91
try $extract cohort/slides -o stained --stain reinhard --template template.png
cp other/slides/$(ls other/slides | head -n 1) cohort/slides/$first
try $extract cohort/slides -o absolute
cp copy/slides/$first cohort/slides/$first
echo "--- extract: a slide that is gone"
mv cohort/slides/$first away
{ ls cohort/slides/*; echo cohort/slides/$first; } | sed '1s/^/slide\n/' >gone.csv
try $extract gone.csv -o absolute
mv away cohort/slides/$first

echo "--- tissue"
microtome tissue -q cohort/slides -o masks >/dev/null
microtome tissue -q copy/slides -o masks >/dev/null && cut -d, -f3 masks/slides.csv | tail -n 1
cp other/slides/$(ls other/slides | head -n 1) cohort/slides/$first
try microtome tissue -q cohort/slides -o masks

echo "--- predict: masks of another slide, then the slide, the mask and the template"
predict="microtome predict -q --network scan_tiny --stride 64 --export none"
try $predict cohort/slides -o maps --tissue masks
cp copy/slides/$first cohort/slides/$first
rm -r maps
$predict cohort/slides -o maps --tissue masks | states
$predict copy/slides -o maps --tissue "$PWD/masks" | states
cp maps/$stem/heatmap.npy before.npy
cp masks/${stem2}_mask.png masks/${stem}_mask.png
try $predict cohort/slides -o maps --tissue masks
cp other/slides/$(ls other/slides | head -n 1) cohort/slides/$first
$predict cohort/slides -o found >/dev/null
cp copy/slides/$first cohort/slides/$first
try $predict cohort/slides -o found
try $predict cohort/slides -o found --overwrite
echo "--- results of a version that kept no inputs"
sed -i 's/"inputs": "[^"]*"/"inputs": ""/' found/$stem/heatmap.json
try $predict cohort/slides -o found
