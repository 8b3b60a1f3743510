# Objective segment: fields of a phantom with label images -> a network -> its nuclei.
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 3 --centers 0 --fields 2 || exit
ls cohort/fields | sed 's/_[0-9]*_[0-9]*\(_labels\)*[.]/_X_Y\1./' | sort | uniq -c
cp -r cohort/fields before
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 3 --centers 0 --fields 2 || exit
diff -r cohort/fields before && echo "the same again"
cat >run.yaml <<'Y'
objective: segment
network: { name: segment_unet, input_px: 64 }
data: { train: cohort/fields, folds: 2, fold: 2, patient: '^(patient_[0-9]+)_', spacing_um_px: 0.5 }
train: { epochs: 40, batch: 2, loss: dice }
optimizer: { name: adamw }
schedule: { learning_rate: 0.01 }
Y
microtome train run.yaml -o run -q --threads 1 >/dev/null || exit
head -1 run/metrics.csv
head -1 run/scores.csv
sed -n '/"objective"/p; /"class_names"/p' run/config.json
echo "--- nuclei"
mkdir fields truth
for labels in cohort/fields/*_labels.png; do
    name=$(basename "$labels" _labels.png)
    cp "cohort/fields/$name.png" fields
    cp "$labels" "truth/$name.png"
done
microtome nuclei fields -o one --model run --slide-mpp 0.5 --truth truth --threads 1 -q --json >one.json || exit
awk '/"all"/ { sub(/.*"f1": /, ""); sub(",.*", ""); print ($0 > 0.4) ? "F1 is above 0.4" : "F1 is " $0 }' one.json
microtome nuclei fields -o two --model run --slide-mpp 0.5 --threads 2 -q >/dev/null || exit
for file in one/*_labels.png one/*_nuclei.csv; do
    cmp "$file" "two/$(basename "$file")"
done && echo "the same bytes on two threads"
slide=cohort/slides/patient_000_node_0.tiff
microtome nuclei "$slide" -o slide --model run --tile 256 --threads 1 -q >/dev/null || exit
awk 'END { print (NR > 20) ? "many nuclei on a slide" : NR " lines" }' slide/patient_000_node_0_nuclei.csv
printf '#!/bin/sh\necho "MaxArraySize            = 1001"\n' >../bin/scontrol && chmod +x ../bin/scontrol
microtome nuclei "$slide" -o tasks --model run --tile 256 -q --on slurm --dry-run >/dev/null || exit
microtome task -q tasks 1 && microtome task -q tasks --finish >/dev/null
diff -r -x run.json -x slides.csv -x tasks slide tasks && echo "the same files from tasks"
echo "--- refused"
try() {
    microtome "$@" >/dev/null
    echo "exit $?" >&2
}
microtome nuclei fields -o one --slide-mpp 0.5 -q 2>&1 | sed -E 's/(then|now): .*/\1/; s/_[0-9]*_[0-9]*_nuclei/_X_Y_nuclei/'
try nuclei fields -o other --model run --labels truth --slide-mpp 0.5 -q
try predict "$slide" -o other --model run -q
try model run fields --model run -o other.csv -q
try train run.yaml -o other -q --set network.name=scan_tiny --set network.input_px=144
try train run.yaml -o other -q --set network.padding=valid
try train run.yaml -o other -q --set data.fold=3
try train run.yaml -o other -q --set data.val=before
try train run.yaml -o other -q --set train.mixup=0.2
try train run.yaml -o other -q --set data.train="$slide"
try train run.yaml -o other -q --set train.monitor=auc
rm before/*_labels.png
try train run.yaml -o other -q --set data.train=before
try phantom -q -o other --slides 1 --size 1024 --fields 1 --artefacts
sed -i 's/"segment"/"classify"/' run/config.json
try nuclei fields -o other --model run --slide-mpp 0.5 -q
