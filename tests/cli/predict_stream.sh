# predict --mode dense --stream: blocks of a padded network that are streamed: the same bytes whatever the threads,
# the order of tasks and whatever was lost; how it was computed is part of a result; nothing else is mixed with it.
microtome phantom -o c --slides 1 --size 1536 --seed 3 --quiet
slide=patient_000_node_0
run() { microtome predict c/slides -o "$1" --network resnet18 --init-seed 3 --mode dense --stride 32 --memory 700 --group 2 --check-windows 4 --export none --quiet "${@:2}" >/dev/null; }
how() { grep -o ' stream=.* task=[0-9]*' "$1/$slide/heatmap.json" || echo " in blocks"; }
streamed() { # how many blocks of how many, of which the last number of plan.json is 1
    /usr/bin/python3 -c 'import json, sys
plan = json.load(open(sys.argv[1]))
print(sum(len(block) == 6 for block in plan["blocks"]), "of", len(plan["blocks"]), "blocks in", len(plan["groups"]), "tasks")' "$1/$slide/plan.json"
}
bytes() { tail -c +129 "$1/$slide/heatmap.npy" | od -An -v -tf4 -w4; } # behind the header
near() {
    paste <(bytes "$1") <(bytes "$2") | awk '
        $1 != $2 { d = $1 - $2; if (d < 0) d = -d; if (!(d < 1e-3)) bad++; differ++ }
        $1 == $1 + 0 { n++; if ($1 > most) most = $1; if (least == "" || $1 < least) least = $1 }
        END { print (n > 1000 && !bad && differ && most > least ? "near" : "different: " bad + 0 ", " differ + 0 " of " n) }'
}
same() { cmp "$1/$slide/heatmap.npy" "$2/$slide/heatmap.npy" && echo "the same"; }

run auto --threads 1 --stream auto
run never --threads 1 --stream never
echo "auto:$(how auto), $(streamed auto)"
echo "never:$(how never), $(streamed never)"
echo "blocks and streamed: $(near auto never)"
echo "== threads"
run two --threads 2
echo "two: $(same auto two)"
echo "== tasks in another order, and one that was lost"
printf '#!/bin/sh\necho "MaxArraySize            = 1001"\n' >../bin/scontrol && chmod +x ../bin/scontrol
run tasks --on slurm --dry-run
for task in $(seq "$(($(wc -l <tasks/tasks/list.csv) - 1))" -1 1); do microtome task -q tasks "$task" --threads 1; done
microtome task -q tasks --finish >/dev/null
echo "tasks: $(same auto tasks)"
cp -r auto lost && rm lost/$slide/heatmap.* && run lost --threads 2 # plan.json stays
echo "lost: $(same auto lost)"
echo "== how it was computed is part of the result"
run never --stream auto || echo "exit $?"
run auto --group 3 || echo "exit $?"
run never --stream never && echo "kept"
echo "== a part of another plan is not used, a plan that is damaged is named"
rm -r lost/$slide/heatmap.* && sed -i 's/\(\[.*\), 1\]/\1, 2]/' lost/$slide/plan.json
run lost || echo "exit $?"
echo "== what cannot be"
run bad --mode window --stream always || echo "exit $?"
run bad --stream sometimes || echo "exit $?"
run bad --memory 320 --stream always || echo "exit $?"
