#!/usr/bin/env bash
# train on whole slides, two bands a slide: on this computer, on SLURM, and on Grid Engine, where the first job ends after
# a checkpoint and the same command again continues: the same weights and scores.
port=22200
. "$(dirname "$0")/lib.sh"
command -v mpirun >/dev/null || skip "no mpirun"
export CPUS=2
slurm_up 2
sge_up
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 4 --centers 0 || fail phantom
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
source=$(realpath "$tests/../..")
learn() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome train "$source/examples/whole-image.yaml" -q -o "$folder" --set data.slides=cohort/slides.csv \
        --set data.folds=2 --set data.mpp=0.5 --set network.name=scan_tiny --set train.tile_px=64 --set train.epochs=2 \
        --set train.batch=1 --set parallel.bands=2 --set checkpoint.every_steps=1 --ranks 2 "$@" >"$folder.txt" 2>"$folder.err"
}
learn near --threads 1 || {
    grep -q 'no MPI' near.err && skip "built without MPI"
    fail "$(cat near.err)"
}
same_model() { # FOLDER
    cmp near/model.safetensors "$1/model.safetensors" || fail "the weights of $1 differ"
    cmp near/scores.csv "$1/scores.csv" || fail "the scores of $1 differ"
}
# Once, on Grid Engine, the ranks are killed when there is a checkpoint.
cat >wrap <<'W'
case "$*" in *--finish) exec "$@" ;; esac
[ -n "${CUT:-}" ] && [ ! -e "$CUT.cut" ] || exec "$@"
touch "$CUT.cut"
"$@" &
until ls "$CUT"/checkpoints/step-*.safetensors >/dev/null 2>&1; do sleep 0.02; done
kill -9 $!
wait $!
exit 1
W
site "$here/wrap"
echo 'mpi_environment: smp' >>site.yaml
learn on_slurm --on slurm --time 5m --site site.yaml --wait || fail "on SLURM: $(cat on_slurm.err)"
same_model on_slurm
CUT=$here/on_sge learn on_sge --on sge --time 5m --site site.yaml --wait && fail "the killed job went well"
[ ! -e on_sge/model.safetensors ] || fail "the killed job ended"
learn on_sge --on sge --time 5m --site site.yaml --wait --resume || fail "on Grid Engine: $(cat on_sge.err)"
same_model on_sge
echo ok
