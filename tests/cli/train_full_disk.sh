# A full disk at a checkpoint: a clear error, and the previous checkpoint is intact. Needs root for
# a small tmpfs.
[ "$(id -u)" -eq 0 ] || { echo "needs root to mount a tmpfs" >&2; exit 77; }
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 12 --patch 160 >/dev/null || exit
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5 }
train: { epochs: 3, batch: 4 }
checkpoint: { every_steps: 2, keep: 100 }
Y
microtome train run.yaml -o whole -q --threads 1 >/dev/null || exit
mkdir disk && mount -t tmpfs -o size=3m tmpfs disk 2>/dev/null || { echo "cannot mount a tmpfs" >&2; exit 77; }
trap 'umount disk' EXIT
microtome train run.yaml -o disk/run -q --threads 1 2>full.txt
echo "exit $?"
sed 's/[0-9]\+/N/g' full.txt
ls disk/run/checkpoints | grep -c part
mount -o remount,size=64m disk
microtome train run.yaml -o disk/run -q --threads 1 --resume >/dev/null || exit
cmp whole/model.safetensors disk/run/model.safetensors && echo same
