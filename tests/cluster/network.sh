#!/usr/bin/env bash
# Training on three hosts, which are network namespaces connected by TCP: the same bits as on one host, also on a
# slow network. A host that is cut off, a connection between two hosts that dies, and a killed rank end
# all ranks with a message; resumed, the bits are those of an uninterrupted run. The same with a network in three stages,
# one on each host, whose bits are those of one process.
port=0
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v mpirun >/dev/null || skip "no mpirun"
command -v ip tc >/dev/null || skip "iproute2 is not installed"
export DIR=$here/hosts OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
hosts() { "$tests/hosts" "$@"; }
trap 'hosts down; down' EXIT
hosts down
hosts up 3 2>up.err && [ "$(hosts on h2 hostname)" = h2 ] || skip "no network namespaces here: $(cat up.err)"
# A lost host is noticed after 4 + 2 x 2 seconds.
network=(OMPI_MCA_plm_rsh_agent="$DIR/rsh" OMPI_MCA_orte_default_hostfile="$DIR/mpi" OMPI_MCA_oob_tcp_keepalive_time=4
    OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=2)
on_three() { env "${network[@]}" "$tests/hosts" on h1 "$@"; } # the command with --ranks 3, begun on h1

microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || fail phantom
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 9 --patch 160 >/dev/null || fail extract
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 2, batch: 2 }
checkpoint: { every_steps: 1, keep: 50 }
Y
settings=()
whole=whole # what results must be the same as
train() { microtome train run.yaml -q --ranks 3 --threads 1 "${settings[@]}" "$@"; }
train_on_three() { on_three microtome train run.yaml -q --ranks 3 --threads 1 "${settings[@]}" "$@"; }
same_bits() { # FOLDER
    cmp $whole/model.safetensors "$1/model.safetensors" || fail "$1: the weights differ"
    cmp $whole/scores.csv "$1/scores.csv" || fail "$1: the scores differ"
}
# Ends a run in the middle, which must print a text, end soon and leave no process; then resumes it.
hurt() { # FOLDER TIMEOUT_S TEXT COMMAND...
    local folder=$1 timeout_s=$2 text=$3 ranks run began
    shift 3
    began=$SECONDS
    train_on_three -o "$folder" --set ranks.timeout_s=$timeout_s >"$folder.txt" 2>"$folder.err" &
    run=$!
    until ls "$folder"/checkpoints/step-* >/dev/null 2>&1; do
        kill -0 $run 2>/dev/null || fail "$folder: $(cat "$folder.err")"
        [ $((SECONDS - began)) -lt 120 ] || fail "$folder: no checkpoint"
        sleep 0.02
    done
    ranks=$(hosts ranks h2) # stands still meanwhile, so that the run cannot end before
    kill -STOP $ranks
    "$@" || fail "$*"
    kill -CONT $ranks 2>/dev/null
    began=$SECONDS
    wait $run && fail "$folder: ended as if nothing had happened"
    [ $((SECONDS - began)) -lt 90 ] || fail "$folder: took $((SECONDS - began)) s to end"
    echo "$folder: ended after $((SECONDS - began)) s: $(grep microtome "$folder.err" | sed -n 1p)"
    grep -q "$text" "$folder.err" || fail "$folder: $(cat "$folder.err")"
    for _ in $(seq 200); do [ -z "$(hosts ranks h1; hosts ranks h2; hosts ranks h3)" ] && break; sleep 0.1; done
    [ -z "$(hosts ranks h1; hosts ranks h2; hosts ranks h3)" ] || fail "$folder: ranks are left"
    [ ! -e "$folder/model.safetensors" ] || fail "$folder: the run had ended before"
    hosts join h3 h2
    train_on_three -o "$folder" --resume >"$folder.txt" 2>"$folder.err" || fail "$folder, resumed: $(cat "$folder.err")"
    same_bits "$folder"
}

train -o whole >whole.txt 2>whole.err || {
    grep -q 'no MPI' whole.err && skip "built without MPI"
    fail "$(cat whole.err)"
}
on_three microtome doctor --mpi --ranks 3 --json >doctor.json || fail "doctor --mpi"
python3 - <<'P' || fail "$(cat doctor.json)"
import json
found = json.load(open("doctor.json"))
assert found["hosts"] == ["h1", "h2", "h3"], found["hosts"]
(pair,) = found["pairs"]
assert pair["ranks"] == [0, 1] and not pair["one_host"] and "looks like TCP" in found["verdict"], found["verdict"]
print(found["verdict"])
P
train_on_three -o three >three.txt 2>three.err || fail "$(cat three.err)"
same_bits three
hurt killed 60 'killed by signal 9' bash -c "kill -9 \$($tests/hosts ranks h3)"
hurt cut 60 'lost a host or the connection to it' "$tests/hosts" cut h3
hurt parted 8 'waited 8 s for other ranks' "$tests/hosts" part h2 h3
whole=alone
settings=(--set train.accumulate=3 --set parallel.stages=3)
microtome train run.yaml -q --threads 1 --set train.accumulate=3 -o alone >/dev/null || fail "one process"
hurt killed_stage 60 'killed by signal 9' bash -c "kill -9 \$($tests/hosts ranks h3)"
hurt parted_stages 8 'waited 8 s for other ranks' "$tests/hosts" part h2 h3
echo "slow: $(hosts slow)"
train_on_three -o slow_stages >stages.txt 2>stages.err || fail "$(cat stages.err)"
same_bits slow_stages
settings=()
whole=whole
train_on_three -o slow >slow.txt 2>slow.err || fail "$(cat slow.err)"
same_bits slow
echo ok
