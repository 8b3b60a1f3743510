# What cannot be studied is named, with a remedy.
try() {
    microtome explain concepts -q --network scan_tiny "$@" 2>&1 | sed 's/^microtome explain: //'
    echo "exit ${PIPESTATUS[0]}"
}
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 1 || exit
microtome extract cohort/slides.csv -q -o stores --random 8 --patch 160 --mpp 0.5 >/dev/null 2>&1 || exit
echo "--- fewer patients than folds"
try stores -o out
try stores/patient_000_node_0.h5 --folds 2 -o out
echo "--- layers, classes and concepts that are not there"
try stores --folds 2 -o out --layer layer9
try stores --folds 2 -o out --layer layer2,layer2
try stores --folds 2 -o out --class tumour
try stores --folds 2 -o out --concepts nuclei.aera.mean
try stores --folds 2 -o out --concepts random,random
echo "--- tables"
printf 'image,grade\nnobody.png,3\n' >none.csv
try stores --folds 2 -o out --table none.csv
printf 'image,grade\nnobody.png,high\n' >words.csv
try stores --folds 2 -o out --table words.csv
printf 'grade\n3\n' >nameless.csv
try stores --folds 2 -o out --table nameless.csv
printf 'image,grade\na.png,3\na.png,4\n' >twice.csv
try stores --folds 2 -o out --table twice.csv
try stores --folds 2 -o out --table gone.csv
echo "--- images: patients unknown, white ones without nuclei, another size"
mkdir white mixed
/usr/bin/python3 - <<'PY' || exit
import struct, zlib
def png(path, side, grey):
    rows = b"".join(b"\0" + bytes([grey] * 3 * side) for _ in range(side))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                  + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for i in range(24):
    png(f"white/p{i % 3}-{i}.png", 160, 255)
png("mixed/p0-1.png", 160, 255), png("mixed/p1-2.png", 192, 255)
PY
try white -o out --slide-mpp 0.5
try white -o out --slide-mpp 0.5 --patient 'p.-'
try white -o out --patient '^(p[0-9])-'
try mixed -o sizes --slide-mpp 0.5 --patient '^(p[0-9])-' --folds 2
try white -o out --slide-mpp 0.5 --patient '^(p[0-9])-' --permutations 400
echo "--- too few permutations; one nucleus is no spread; constant concepts"
try stores --folds 2 -o few --concepts random,colour.red,nuclei.count --permutations 9 | grep -v '^layer\|^scan_tiny'
