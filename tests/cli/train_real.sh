# Real patches: IDC from a tar (a few steps), CAMELYON16 from folders with four slides.
data=${SHARED:?}/data
[ -f "$data/idc/val.tar" ] || { echo "the real patches are not here" >&2; exit 77; }
microtome train -q --threads 1 -o idc --set data.train="$data/idc/val.tar" --set classes='[normal, idc]' \
    --set data.spacing_um_px=1 --set data.resize_px=144 --set network.input_px=144 \
    --set train.batch=64 --set train.epochs=1 --set data.val_fraction=0.3 >/dev/null
sed -n 's/,.*//p' idc/metrics.csv
sed -n 's/.*"patients": //p' idc/run.json
wc -l <idc/scores.csv
microtome train -q --threads 1 -o camelyon --set data.train="$data/camelyon16/patches" --set data.spacing_um_px=0.25 \
    --set train.batch=8 --set train.epochs=1 --set data.val_fraction=0.25 \
    --set data.stain=macenko --set data.stain_template="$data/camelyon16/stain_template.png" \
    --set augment.hsv_noise=20 >/dev/null
cut -d, -f2 camelyon/scores.csv | sort -u
sed -n 's/.*"patients": //p' camelyon/run.json
microtome train -q --set data.train="$data/idc/train.tar" --set data.val="$data/idc/train.tar" \
    --set classes='[normal, idc]' -o leak
