# Objectives from the command line. Regression: the coverage of a patch is stored, learnt and
# predicted; what makes no sense of a number is refused. Classes that are scored each by itself.
microtome phantom -q -o cohort --slides 6 --size 2048 --seed 2 --centers 0 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 50 --patch 144 --label-rule any --target coverage:tumor \
    >/dev/null || exit
cat >run.yaml <<'Y'
objective: regress
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.34 }
train: { epochs: 8, batch: 16, ema: 0.9 }
optimizer: { name: adamw }
schedule: { learning_rate: 0.004 }
Y
microtome train run.yaml -o run -q --threads 1 --json >result.json || exit
awk '/"r2"/ { sub(",", "", $2); print ($2 > 0.5) ? "R2 is above 0.5" : "R2 is " $2 }' result.json
head -1 run/metrics.csv
head -1 run/scores.csv
ls run/scatter.png run/scatter.svg run/curves.png
sed -n '/"objective"/,/"unit"/p' run/config.json
microtome train run.yaml -o huber -q --threads 1 --set train.loss=huber --set train.epochs=2 --set train.tta=true \
    >/dev/null || exit
grep '  loss:' huber/config.yaml
echo "--- patches and windows of a slide get the same number"
slide=cohort/slides/patient_000_node_0.tiff
microtome model run stores/patient_000_node_0.h5 --model run -o again.csv -q >/dev/null || exit
head -1 again.csv
microtome predict -q "$slide" -o heat --model run --stride 144 --threads 1 >/dev/null || exit
ls heat/patient_000_node_0
grep '"number"' heat/patient_000_node_0/heatmap.json
head -1 heat/patient_000_node_0/tiles.csv
grep -c '"classification"' heat/patient_000_node_0/tiles.geojson
microtome report heat -o page -q || exit
grep -o '<div class="ramp">.*</figcaption>' page/index.html | sed 's/<[^>]*>/ /g; s/[0-9][0-9.e-]*/N/g; s/  */ /g; s/^ //; s/ $//'
microtome extract -q "$slide" -o dense --dense --patch 144 --margin 0 --label-rule none >/dev/null || exit
microtome model run dense/patient_000_node_0.h5 --model run -o dense.csv -q >/dev/null || exit
awk -F, 'FNR == 1 { next }
    NR == FNR { s[$1 "," $2] = $5; next }
    $3 "," $4 in s { d = $7 - s[$3 "," $4]; d = d < 0 ? -d : d; n++; worst = d > worst ? d : worst }
    END { print (n > 20) ? "many" : n, (worst < 1e-5) ? "equal" : "differ by " worst }' \
    heat/patient_000_node_0/tiles.csv dense.csv
echo "--- every class by itself: scores as in validation"
microtome train run.yaml -o sigmoid -q --threads 1 --set objective=classify --set train.loss=sigmoid --set train.epochs=1 \
    >/dev/null || exit
grep -E '"(objective|activation)"' sigmoid/config.json
cut -d, -f1 sigmoid/scores.csv | sed -n '2s/ patch.*//p' >store
microtome model run "$(cat store)" --model sigmoid -o classes.csv -q >/dev/null || exit
awk -F, 'FNR == 1 { next }
    NR == FNR { s[$1] = $7 "," $8; next }
    $1 in s { split(s[$1], p, ","); n++; for (c = 1; c <= 2; c++) { d = $(3 + c) - p[c]; d = d < 0 ? -d : d
        worst = d > worst ? d : worst }; sum += ($4 + $5 - 1) ^ 2 }
    END { print (n > 40) ? "many" : n, (worst < 1e-5) ? "equal" : "differ by " worst
        print (sum > 1e-6) ? "their sum is not 1" : "their sum is 1" }' classes.csv sigmoid/scores.csv
echo "--- refused"
try() {
    microtome "$@" >/dev/null
    echo "exit $?" >&2
}
try predict -q "$slide" -o other --model run --export tiles-csv,regions
try predict -q "$slide" -o other --model run --scores logits
try classify -q features heat -o table.csv
try train run.yaml -o other -q --mine run --set mine.stores=stores
try train run.yaml -o other -q --mine run --set mine.stores=stores --set objective=classify
try train run.yaml -o other -q --distill-dense run --set objective=distill
try train run.yaml -o other -q --set data.train=dense
try train run.yaml -o other -q --set data.train="$slide"
try train run.yaml -o other -q --set network.input_px=128
try train run.yaml -o other -q --set train.monitor=auc
try extract -q cohort/slides.csv -o other --random 5 --target coverage:stroma
try extract -q cohort/slides.csv -o other --random 5 --target age
try extract -q cohort/slides.csv -o other --random 5 --target coverage:tumor --label-rule slide
try extract -q cohort/slides.csv -o other --random 5 --target coverage:tumor --layout fda
