# Bad areas: found, kept, redone where a file is missing; omitted from stores and heatmaps.
set -e
microtome phantom -o cohort --slides 1 --size 6144 --seed 4 --artefacts --quiet
ls cohort/artefacts
microtome tissue cohort/slides -o masks --quiet
microtome tissue cohort/slides -o masks --quality --threads 2
ls masks
cut -d, -f3,11- masks/slides.csv
grep -o '"name": *"[A-Z][a-z]*"' masks/patient_000_node_0_quality.geojson | sort | uniq -c | sed 's/^ *//'
sha256sum masks/*_quality* >before.txt
microtome tissue cohort/slides -o masks --quality --json --quiet
cut -d, -f3,11- masks/slides.csv
rm masks/patient_000_node_0_quality.geojson
microtome tissue cohort/slides -o masks --quality --threads 1 --quiet
sha256sum --check --quiet before.txt && echo the same bytes
microtome tissue cohort/slides -o masks --quality --method ncrf --quiet || echo "other options: $?"

echo "-- extract"
for omit in "" "--omit all" "--omit pen,blur"; do
    # shellcheck disable=SC2086
    microtome extract cohort/slides -o "stores$omit" --dense --mpp 1 --patch 64 --margin 0 --tissue-fraction 0.5 --quiet $omit
done
microtome extract cohort/slides -o "stores--omit all" --dense --mpp 1 --patch 64 --margin 0 --tissue-fraction 0.5 --quiet || echo "made with omit: $?"
microtome extract cohort/slides -o other --dense --omit blurry || echo "no such kind: $?"

echo "-- predict"
for omit in "" "--omit all"; do
    # shellcheck disable=SC2086
    microtome predict cohort/slides -o "heat$omit" --network scan_tiny --stride 64 --export none --quiet $omit
done
grep -o 'omit=[a-z,]*' "heat--omit all/patient_000_node_0/heatmap.json"
microtome predict cohort/slides -o heat --network scan_tiny --stride 64 --export none --quiet --omit fold || echo "made without: $?"
