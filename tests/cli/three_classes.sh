# Three tissue classes from slides to report: the names of the classes go all the way, and regions
# of the heatmaps open again as annotations.
check() { awk -v value="$2" -v least="$3" -v what="$1" 'BEGIN { print what (value >= least ? " is high" : ": " value " is below " least) }'; }
microtome phantom -o cohort --slides 6 --size 3072 --seed 3 --classes stroma,lymphoid,tumor -q || exit
microtome extract cohort/slides.csv -o patches --random 60 --patch 160 --class-map cohort/classes.yaml --seed 1 -q | sed 's/  */ /g'
cat >train.yaml <<'END'
network: { name: scan_tiny, input_px: 144 }
data: { train: [patches], val_fraction: 0.5 }
train: { epochs: 5 }
schedule: { learning_rate: 0.01 }
END
microtome train train.yaml -o model -q >/dev/null || exit
grep -o '"class_names": .*' model/config.json
echo "--- heatmaps"
grep -E '^slide,|,test$' cohort/slides.csv >cohort/test.csv
microtome predict cohort/test.csv --model model --stride 32 -o results/heatmaps -q >/dev/null || exit
for slide in results/heatmaps/patient*; do
    grep -o '"classes": .*' "$slide/heatmap.json"
    head -n 1 "$slide/tiles.csv"
    grep -o '"name": "[a-z]*", "color": [^}]*' "$slide/regions.geojson" | sort -u
done
ls results/heatmaps/patient_001_node_0
echo "--- judged against the drawings"
microtome evaluate confusion results/heatmaps --truth cohort/test.csv --class-map cohort/classes.yaml --plot results/confusion -q >judged.txt 2>/dev/null
head -n 1 judged.txt
check "balanced accuracy" "$(sed -n 's/.*balanced accuracy \([0-9.]*\).*/\1/p' judged.txt)" 0.5
microtome evaluate roc model/test_scores.csv --slide sample --bootstrap 0 -q >curves.txt
check "macro AUC" "$(awk '$2 == "macro" { print $3 }' curves.txt)" 0.7
echo "--- report"
microtome report results model cohort -o report -q
grep -o '<table class="confusion">' report/index.html
grep -o '<option value="[^"]*"[^>]*>[^<]*' report/index.html | sort -u
cut -d, -f1,2 report/areas.csv
awk -F, 'NR > 1 { share[$1] += $4 } END { for (slide in share) printf "%.3f\n", share[slide] }' report/areas.csv
grep -c stroke report/slides/1/truth.svg
echo "--- regions are annotations: every cell is in the region of its class"
printf 'slide,annotation\n' >regions.csv
for slide in results/heatmaps/patient*; do
    echo "$(basename "$slide"),$slide/regions.geojson" >>regions.csv
done
microtome evaluate confusion results/heatmaps --truth regions.csv --class-map cohort/classes.yaml --downsample 32 -q | tail -n 1 | sed 's/^[0-9]* cells//'
awk -F, 'NR > 1 { printf "cohort/slides/%s.tiff,%s\n", $1, $2 }' regions.csv | sed '1i slide,annotation' >again.csv
microtome extract again.csv -o again --random 5 --patch 64 --class-map cohort/classes.yaml -q 2>/dev/null | sed -n '1s/  */ /gp'
