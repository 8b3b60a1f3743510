# Hard negatives: the first model's false positives on normal slides go into the second training.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 12 --patch 160 >/dev/null || exit
mkdir normal
for store in stores/*.h5; do # of these the patches without tumour
    ln -s "../$store" normal
done
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5 }
train: { epochs: 1, batch: 4 }
mine: { stores: normal, threshold: 0, limit: 10 }
Y
microtome train run.yaml -o first -q --threads 1 >/dev/null || exit
microtome train run.yaml -o second -q --threads 1 --mine first --set network.weights=first/model.safetensors >/dev/null || exit
head -1 second/hard_negatives.csv
wc -l <second/hard_negatives.csv
grep -c hard_negatives second/config.yaml
microtome train run.yaml -o second -q --threads 1 --mine first
echo "exit $?" >&2
microtome train run.yaml -o second -q --threads 1 --mine first --resume --set network.weights=first/model.safetensors >/dev/null
echo "exit $?" >&2
microtome train run.yaml -o again -q --threads 2 --mine first --set network.weights=first/model.safetensors >/dev/null || exit
cut -d, -f1,2 second/hard_negatives.csv | cmp - <(cut -d, -f1,2 again/hard_negatives.csv) && echo "the same list with two threads"
microtome train run.yaml -o none -q --mine first --set mine.stores=[]
echo "exit $?" >&2
