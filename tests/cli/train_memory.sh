# train.memory: auto keeps to the memory that a process may take, by recomputation if it must, with the same bits; a
# limit that cannot be met is refused with the least that can; train.store: bf16 is what memory: half is.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to measure under the sanitizers" >&2; exit 77; }
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
microtome extract -q cohort/slides.csv -o stores --random 4 --patch 104 >/dev/null 2>&1 || exit
cat >run.yaml <<'Y'
network: { name: resnet18, input_px: 96 }
data: { train: stores, val_fraction: 0.5, workers: 1, window_mb: 8 }
train: { epochs: 1, batch: 8 }
schedule: { learning_rate: 0.005 }
Y
train() { microtome train run.yaml "$@" --threads 2 2>&1; }
same() { cmp "$1/model.safetensors" "$2/model.safetensors" && echo "$1 = $2"; }
way() { grep -o "train.memory: [a-z]*; predicted peak" | sort -u; }
train -o plain >/dev/null
train -o much --set train.memory=auto --set train.memory_mb=4000 | way
same plain much
refused=$(train -o none --set train.memory=auto --set train.memory_mb=100)
echo "$refused" | sed 's/[0-9]* MB, but/N MB, but/'
least=$(echo "$refused" | sed -n 's/.*at least \([0-9]*\) MB.*/\1/p')
train -o little --set train.memory=auto --set train.memory_mb=$((least + 10)) >log
way <log
peak=$(sed -n 's/.*measured peak \([0-9]*\) MB.*/\1/p' log)
same plain little
[ "$peak" -le "$((least + 10))" ] && echo "the limit was kept" || echo "$peak MB, not $least MB"
train -o half --set train.memory=half >/dev/null
train -o bf16 --set train.store=bf16 >/dev/null
same half bf16
cmp -s plain/model.safetensors half/model.safetensors || echo "half differs from plain"
for set in "train.memory=auto" "train.memory=recompute --set train.store=bf16" "train.memory=stream" \
    "train.memory=auto --set train.memory_mb=4000 --set train.store=bf16"; do
    # shellcheck disable=SC2086
    train -o none --set $set
done
