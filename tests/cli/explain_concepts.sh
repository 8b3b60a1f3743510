# Concepts of a small network with random weights on phantom patches: results, kept and replaced,
# same bytes on any number of threads; columns of a table, among them the network's own logit.
microtome phantom -q -o cohort --slides 6 --size 1024 --seed 1 || exit
microtome extract cohort/slides.csv -q -o stores --random 12 --patch 160 --mpp 0.5 >/dev/null 2>&1 || exit
run() {
    microtome explain concepts stores -q --network scan_tiny --layer layer2,layer3 --permutations 400 "$@" || exit
}
echo "--- defaults"
run -o out --most-patches 60 --threads 1 | cut -c1-25 | sed 's/ *$//'
ls out out/activations | grep -v '^$'
ls out/directions | grep -c npy
head -n 1 out/concepts.csv
wc -l <out/values.csv
echo "--- again: kept; with other concepts: the activations are reused"
run -o out --most-patches 60 >first.txt
microtome explain concepts stores --network scan_tiny --layer layer2,layer3 --permutations 400 --most-patches 60 -o out 2>&1 >/dev/null
microtome explain concepts stores -q --network scan_tiny --layer layer3 -o out 2>&1 | sed 's/^.*: out/out/'
echo "--- threads"
run -o two --most-patches 60 --threads 2 >/dev/null
for file in concepts.csv values.csv sensitivities.csv learnt.svg matters.png activations/layer2.npy directions/layer2.colour.brightness.npy; do
    cmp "out/$file" "two/$file"
done
echo "--- a table: the logit is read from the last layer and raises itself; yes and no"
/usr/bin/python3 - <<'PY' || exit
import csv
rows = list(csv.DictReader(open("two/values.csv")))
middle = sorted(float(row["logit"]) for row in rows)[len(rows) // 2]
with open("table.csv", "w") as out:
    print("slide,x,y,logit,against,positive,noise", file=out)
    for i, row in enumerate(rows):
        answer = "yes" if float(row["logit"]) > middle else "no"
        against = -2 * float(row["logit"])
        print(row["slide"], row["x"], row["y"], row["logit"], against, answer, i * 7919 % 101, sep=",", file=out)
PY
run -o table --most-patches 60 --table table.csv --json >table.json
cmp table.json table/concepts.json
/usr/bin/python3 - <<'PY'
import json
for row in json.load(open("table.json"))["results"]:
    found = "auc" if "auc" in row else "r2"
    if row["layer"] == "layer3":
        print(row["concept"], found, "high" if row[found] > 0.9 else "low", row["verdict"])
PY
echo "--- as a task of a cluster: the same bytes"
printf '#!/bin/sh\necho "MaxArraySize            = 1001"\n' >../bin/scontrol && chmod +x ../bin/scontrol
run -o far --most-patches 60 --on slurm --dry-run >/dev/null
cut -d, -f1,2 far/tasks/list.csv
microtome task -q far 1 && microtome task -q far --finish >far.txt 2>/dev/null
diff -r -x tasks -x groups -x run.json -x .lock out far
diff first.txt <(head -n "$(wc -l <first.txt)" far.txt)
echo "--- nuclei from the phantom's truth: more of them are where more were planted"
microtome phantom -q -o cohort --slides 6 --size 1024 --seed 1 --nuclei
run -o truth --most-patches 60 --concepts nuclei.count,nuclei.area.mean --nuclei cohort/nuclei >/dev/null
/usr/bin/python3 - <<'PY'
import csv
planted, found = (list(csv.DictReader(open(name + "/values.csv"))) for name in ("truth", "out"))
pairs = [(float(a["nuclei.count"]), float(b["nuclei.count"])) for a, b in zip(planted, found)]
mean = [sum(pair[k] for pair in pairs) / len(pairs) for k in (0, 1)]
product = sum((a - mean[0]) * (b - mean[1]) for a, b in pairs)
squares = [sum((pair[k] - mean[k]) ** 2 for pair in pairs) for k in (0, 1)]
print("correlated" if product / (squares[0] * squares[1]) ** 0.5 > 0.8 else "not correlated")
PY
microtome explain concepts stores -q --network scan_tiny --nuclei cohort/slides -o none 2>&1 | cut -c1-90
echo "--- in a report"
microtome report out table -o page -q
grep -o '<h[23]>[^/]*' page/index.html
grep -c '<td><bdi>layer' page/index.html
grep -o '<img src="concepts[^"]*"' page/index.html
cmp out/learnt.svg page/concepts/1_learnt.svg
cp -r out broken && echo '{"results": []}' >broken/concepts.json
microtome report out broken -o page -q
grep -o 'class="problem">[^<]*' page/index.html
