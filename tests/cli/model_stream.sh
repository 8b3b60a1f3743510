# Networks that run on a large image tile by tile: what bench prints, within its budget, and clear errors.
microtome model bench --network resnet18 --train --memory stream --size 600 --tile-px 256 --repeats 1 --json >bench.json
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),*$/\1/p" ${2:-bench.json}; }
sed -n 's/^ *"\([a-z_]*\)":.*/\1/p' bench.json | paste -sd ' '
for key in mode memory batch_norm height_px width_px tile_px tiles_down tiles_across tiles_skipped; do
    echo "$key $(value $key)"
done
microtome model bench -q --network resnet18 --memory stream --size 600 --tile-px 256 --repeats 1 >infer.json
echo "mode $(value mode infer.json), $(value tiles_down infer.json) x $(value tiles_across infer.json) tiles"
microtome model bench -q --network resnet18 --train --memory stream --size 20000 --memory-mb 1000 --spill . --repeats 0 >plan.json
echo "planned: $(value height_px plan.json) px, seconds '$(value seconds plan.json)'," \
    "$(awk "BEGIN { print $(value predicted_mb plan.json) <= 1000 ? \"fits\" : \"too much\" }")"

for words in '--memory-mb 100' '--tile-px 256 --memory recompute' '--spill here' '--memory stream --batch 2'; do
    microtome model bench --network resnet18 --train $words
    echo "exit $?"
done 2>&1
microtome model bench -q --network scan_tiny --train --memory stream --size 1000 --spill nowhere 2>&1
microtome model bench -q --network scan_tiny --train --memory stream --size 100000 --memory-mb 10 2>&1 |
    sed 's/at least [0-9]* MB/at least .../'
microtome model bench -q --network vit_small_patch16_224 --train --memory stream --size 448 2>&1

# images: the scores of the network run whole; maps of layers, however they are cut into tiles; slides
microtome phantom -o cohort --slides 1 --size 1024 --seed 3 -q
microtome info cohort/slides/*.tiff --thumbnail image.png >/dev/null
network='--network resnet18 --init-seed 5 --classes 2'
microtome model run -q image.png $network >whole
microtome model run -q image.png $network --memory stream --tile-px 256 >streamed
awk 'NR == FNR { a = $3; next } { d = $3 - a; print (d < 1e-5 && d > -1e-5) ? "whole = streamed" : "differ" }' whole streamed
microtome model run -q image.png $network --memory stream --tile-px 256 -o scores.csv && head -n 1 scores.csv
microtome model run -q image.png $network --memory stream --tile-px 256 --layer layer3 -o small.npy
microtome model run -q image.png $network --memory stream --tile-px 512 --layer layer3 -o large.npy
microtome model run -q image.png $network --memory stream --tile-px 256 --layer avgpool -o mean.npy
microtome model run -q image.png $network --memory stream --tile-px 256 --layer layer4 -o last.npy
cmp -n 128 small.npy large.npy && python3 - <<'END'
import struct


def read(name):
    return [value[0] for value in struct.iter_unpack("<f", open(name + ".npy", "rb").read()[128:])]


def same(a, b):
    return len(a) == len(b) and max(abs(x - y) for x, y in zip(a, b)) <= 1e-4 * max(map(abs, a))


last = read("last")
print("by tiles of another size:", same(read("small"), read("large")))
print("its mean:", same(read("mean"), [sum(last[i::512]) / (len(last) // 512) for i in range(512)]))
END
microtome model run -q cohort/slides/*.tiff $network --memory stream --tile-px 512 --json | grep -c class1
for words in '--layer layer3 -o x.npy' '--memory stream --layer layr3 -o x.npy' '--memory stream --layer layer3' \
    '--memory stream --layer layer3 -o small.npy' '--memory stream --tta' '--memory stream --memory-mb 50'; do
    microtome model run -q image.png $network $words
    echo "exit $?"
done 2>&1 | sed 's/at least [0-9]* MB.*/at least .../'
