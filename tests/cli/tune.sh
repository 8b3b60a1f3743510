# Reading speed by the size of groups: a table, a plot and a size that is one of those measured.
microtome phantom -q -o cohort --slides 1 --size 1024 --seed 1 || exit
microtome tune -q cohort/slides.csv -o out --patches 20 --patch 64 --threads 1
ls out
cut -d, -f1,2 out/tune.csv
microtome tune -q cohort/slides.csv -o out --patches 2 --patch 64 --json | python3 -c '
import json, sys
result = json.load(sys.stdin)
assert result["suggested_group"] in [row["group"] for row in result["groups"]]
print([row["group"] for row in result["groups"]])'
microtome tune -q cohort/slides.csv
echo "exit $?"
