# Columns of the slide list: labels from any of them, several carried into the stores, numbers to be
# learnt, survival; and what is wrong with them.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || { echo "h5py is not installed" >&2; exit 77; }
microtome phantom -q -o cohort --slides 6 --size 2048 --seed 2 --centers 0 || exit
i=0
for slide in cohort/slides/*.tiff; do
    i=$((i + 1))
    [ $i -gt 1 ] || echo 'slide,label,split,subtype,HER2 score,age,months,died,notes'
    echo "$slide,,train,$([ $((i % 2)) = 0 ] && echo ductal || echo lobular),$((i % 4)),$((40 + i)).5,$((i * 7)),$((i % 2)),\"a, b\""
done >list.csv
slide1=$(sed -n '2s/.*\/\(.*\).tiff.*/\1/p' list.csv)
cat >show.py <<'END'
import h5py, json, sys
with h5py.File(sys.argv[1]) as file:
    for name in ("slide_label", "class_names", "slide_table", "survival_columns", "survival_time", "survival_event"):
        value = file.attrs.get(name)
        if value is not None:
            text = value.decode() if isinstance(value, bytes) else str(value)
            print(name, json.loads(text) if name == "slide_table" else text)
    if "targets" in file:
        values = sorted(set(file["targets"][:].tolist()))
        print("targets", values, [v.decode() if isinstance(v, bytes) else str(v) for v in (file["targets"].attrs["name"], file["targets"].attrs["unit"])])
    print("labels", sorted(set(file["labels"][:].tolist())))
END
show() { /usr/bin/python3 show.py "$@"; }
extract() { microtome extract -q "$@" --dense --patch 256 --margin 0; }
state() { awk 'NR > 1 { print $NF }' | sort | uniq -c | awk '{ print $1, $2 }'; }
echo "--- a label from another column, the others carried, survival kept"
extract list.csv -o subtype --label-column subtype --label-rule slide --class-map '{classes: [lobular, ductal]}' --survival months,died | state
show "subtype/$slide1.h5"
echo "--- without other columns nothing is added"
extract cohort/slides/"$slide1".tiff -o plain --label-rule none | state
show "plain/$slide1.h5"
echo "--- a number of the slide, in both layouts"
for layout in blocks clam; do
    extract list.csv -o age-$layout --layout $layout --label-rule none --target column:Age | state
    show "age-$layout/$slide1.h5" | grep targets
done
cat >run.yaml <<'Y'
objective: regress
network: { name: scan_tiny, input_px: 256 }
data: { train: age-blocks, val_fraction: 0.34 }
train: { epochs: 1, batch: 16 }
optimizer: { name: adamw }
schedule: { learning_rate: 0.004 }
Y
microtome train run.yaml -o run -q --threads 1 >/dev/null || exit
sed -n '/"objective"/,/"unit"/p' run/config.json
echo "--- a later run"
extract list.csv -o age-blocks --label-rule none --target column:Age | state
sed 's/a, b/c/' list.csv >notes.csv
extract notes.csv -o age-blocks --label-rule none --target column:Age | state
sed 's/41\.5/41.25/' list.csv >older.csv
extract older.csv -o age-blocks --label-rule none --target column:Age
echo "--- as tasks of a cluster: the same stores"
printf '#!/bin/sh\necho "MaxArraySize            = 1001"\n' >../bin/scontrol && chmod +x ../bin/scontrol
given="list.csv --dense --patch 256 --margin 0 --label-column subtype --label-rule slide --survival months,died --target column:age"
microtome extract -q $given --class-map '{classes: [lobular, ductal]}' -o here >/dev/null || exit
microtome extract -q $given --class-map '{classes: [lobular, ductal]}' -o tasks --on slurm --dry-run >/dev/null || exit
head -n 1 tasks/tasks/slides.csv
microtome task -q tasks 1 2 3 4 5 6 && microtome task -q tasks --finish >/dev/null
cut -d, -f3 tasks/slides.csv | sort | uniq -c | awk '{ print $1, $2 }'
for store in here/*.h5; do cmp "$store" tasks/"${store##*/}"; done
echo "--- an empty number is that slide's failure"
sed '2s/41\.5//' list.csv >gap.csv
extract gap.csv -o gap --label-rule none --target column:age | state
echo "--- wrong columns and cells, before any slide is read"
extract list.csv -o no --label-column subtyp --label-rule slide
extract cohort/slides -o no --label-column subtype --label-rule slide
extract list.csv -o no --label-rule none --target column:subtype
extract list.csv -o no --label-rule none --target column:weight
extract list.csv -o no --label-rule none --target column:
extract list.csv -o no --label-rule none --target column:age --layout fda
extract list.csv -o no --label-rule none --survival months
extract list.csv -o no --label-rule none --survival months,dead
sed '3s/,14,0,/,-14,0,/' list.csv >negative.csv && extract negative.csv -o no --label-rule none --survival months,died
sed '3s/,14,0,/,14,2,/' list.csv >event.csv && extract event.csv -o no --label-rule none --survival months,died
sed '3s/,14,0,/,14,,/' list.csv >half.csv && extract half.csv -o no --label-rule none --survival months,died
[ -e no ] && echo "a folder was made"
echo "--- the same list as truth of scores, and on the report"
{ echo slide,score; awk -F, 'NR > 1 { n = split($1, p, "/"); print p[n] "," NR / 10 }' list.csv; } >scores.csv
microtome evaluate roc scores.csv --truth list.csv --label-column died --bootstrap 0 -q | sed -n 1,3p
microtome evaluate roc scores.csv --truth list.csv --label-column dyed --bootstrap 0 -q
mkdir results && cp scores.csv list.csv results/
microtome report results -o page -q --label-column subtype >/dev/null && grep -o '<bdi>ductal</bdi>' page/index.html | sort | uniq -c | awk '{ print $1, $2 }'
microtome report results -o page -q --label-column subtle
exit 0
