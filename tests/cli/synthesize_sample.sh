# From patches to a model that makes patches, and patches from it: the same for any threads, ranks and parts; marked as
# synthetic; by class and centre; what makes no sense is refused.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 2 --centers 2 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 40 --patch 16 --label-rule any >/dev/null || exit
cat >gen.yaml <<'Y'
objective: generate
network: { name: unet_tiny, input_px: 16 }
generate: { centre: '_00([0-9])' }
data: { train: stores, val_fraction: 0.25 }
train: { epochs: 2, batch: 16, ema: 0.9 }
optimizer: { name: adam }
schedule: { learning_rate: 0.002 }
Y
microtome synthesize train gen.yaml -o gen -q --threads 2 >/dev/null || exit
head -1 gen/metrics.csv
head -1 gen/losses.csv
sed -n '/"objective"/,/\]/p' gen/config.json
echo "--- trained again"
microtome synthesize train gen.yaml -o again -q --threads 1 --set train.epochs=1 >/dev/null || exit
microtome synthesize train gen.yaml -o parts -q --threads 1 >/dev/null || exit
cmp gen/model.safetensors parts/model.safetensors && echo "threads do not matter"
cmp -s gen/model.safetensors again/model.safetensors || echo "epochs do"
echo "--- every process"
for process in edm epsilon v; do
    microtome synthesize train gen.yaml -o $process -q --set generate.process=$process --set train.epochs=1 >/dev/null || exit
    microtome synthesize sample --model $process -o $process/samples -q --n 3 --steps 4 --seed 3 || exit
done
microtome synthesize sample --model v -o v/ddim -q --n 3 --steps 4 --sampler ddim || exit
echo "--- the same for any threads, ranks and parts"
sample() { microtome synthesize sample --model gen -q --seed 7 --steps 3 --format png "$@" >/dev/null || exit; }
sample -o all --n 40 --threads 1
sample -o threads --n 40 --threads 2
cmp_all() { diff -rq "$1" "$2" -x samples.json -x grid.png && echo "the same"; }
cmp_all all threads
sample -o part --n 5 --first 18
for file in part/synthetic*; do cmp "$file" "all/${file#part/}" || echo "$file differs"; done
ls part
if command -v mpirun >/dev/null; then
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # Open MPI's
    sample -o ranks --n 40 --ranks 2 --threads 1
    cmp_all all ranks
else
    echo "the same"
fi
echo "--- a store that others read, marked in every file"
microtome synthesize sample --model gen -o store -q --n 20 --steps 2 --class tumor --centre 1 --guidance 2 || exit
ls store
python3 - <<'P'
import h5py, json
from PIL import Image
with h5py.File("store/patches.h5") as f:
    print(f["blocks"].shape, set(f["labels"][:]), f.attrs["class_names"])
    print(sorted(json.loads(f.attrs["synthetic"])))
print(Image.open("part/grid.png").text["Comment"].split("{")[0], Image.open("part/grid.png").size)
P
echo "--- refused"
try() {
    microtome synthesize "$@" >/dev/null
    echo "exit $?" >&2
}
try train gen.yaml -o other -q --set objective=classify
try train gen.yaml -o other -q --set network.name=scan_tiny
try train gen.yaml -o other -q --set network.input_px=10
try train gen.yaml -o other -q --set generate.centre='x(y)'
try train gen.yaml -o other -q --set generate.centre='('
try train gen.yaml -o other -q --set train.mixup=0.2
try train gen.yaml -o other -q --set parallel.stages=2
try sample --model gen -o store
try sample --model nowhere -o other
try sample --model cohort -o other
try sample --model gen -o other --class stroma
try sample --model gen -o other --centre 5
try sample --model gen -o other --sampler ddim
try sample --model v -o other --steps 2000
try sapmle
