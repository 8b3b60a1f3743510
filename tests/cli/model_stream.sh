# Networks that run on a large image tile by tile: what bench prints, within its budget, and clear errors.
microtome model bench --network resnet18 --train --memory stream --size 600 --tile-px 256 --repeats 1 --json >bench.json
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),*$/\1/p" ${2:-bench.json}; }
sed -n 's/^ *"\([a-z_]*\)":.*/\1/p' bench.json | paste -sd ' '
for key in mode memory batch_norm height_px width_px tile_px tiles_down tiles_across tiles_skipped; do
    echo "$key $(value $key)"
done
microtome model bench -q --network resnet18 --memory stream --size 600 --tile-px 256 --repeats 1 >infer.json
echo "mode $(value mode infer.json), $(value tiles_down infer.json) x $(value tiles_across infer.json) tiles"

for words in '--memory-mb 100' '--tile-px 256 --memory recompute' '--spill here' '--memory stream --batch 2'; do
    microtome model bench --network resnet18 --train $words
    echo "exit $?"
done 2>&1
microtome model bench -q --network vit_small_patch16_224 --train --memory stream --size 448 2>&1
