#!/usr/bin/env bash
# explain concepts on networks whose reasons are known (bench/study_explain.py in small): on phantoms,
# whose metastases differ by their nuclei, nuclear size raises the score and a random number is not
# learnt; where every metastasis has a pen mark, the pen is found to raise it. Exit 77: skipped.
set -u
fail() { echo "$1"; exit 1; }
microtome=${MICROTOME:?}
work=${SCRATCH:?}/explain
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1

for pen in none tumor; do
    for side in learn:16:1 show:12:2; do
        IFS=: read -r name slides seed <<<"$side"
        "$microtome" phantom -o "$pen-$name" --slides "$slides" --size 2048 --seed "$seed" --pen $pen -q || fail "phantom"
        "$microtome" extract "$pen-$name/slides.csv" -o "$pen-$name-patches" --random 30 --patch 96 --mpp 0.5 \
            --white 0.1 --seed 1 -q >/dev/null || fail "extract"
    done
    cat >$pen.yaml <<YAML
seed: 1
network: { name: resnet18, input_px: 96 }
data: { train: [$pen-learn-patches], val_fraction: 0.2 }
augment: { hed_jitter: 0.1, brightness: 0.2 }
train: { epochs: 5, batch: 32, ema: 0.97 }
schedule: { learning_rate: 0.003, warmup_epochs: 1 }
YAML
    "$microtome" train $pen.yaml -o $pen-net -q || fail "train"
    "$microtome" explain concepts $pen-show-patches --model $pen-net --layer layer3,layer4 \
        --concepts nuclei.area.mean,quality.pen,random -o $pen-concepts -q ||
        fail "explain concepts"
done

# verdict FOLDER LAYER CONCEPT
verdict() { awk -F, -v layer="$2" -v concept="$3" '$1 == layer && $2 == concept' "$1/concepts.csv" | grep -o '"[^"]*"$'; }
expect() { [ "$(verdict "$1" "$2" "$3")" = "\"$4\"" ] || fail "$1, $2, $3: $(verdict "$1" "$2" "$3"), not \"$4\""; }
for layer in layer3 layer4; do
    expect none-concepts $layer nuclei.area.mean "learnt, raises the score"
    expect none-concepts $layer random "not learnt"
    expect none-concepts $layer quality.pen "not learnt"
    expect tumor-concepts $layer quality.pen "learnt, raises the score"
    expect tumor-concepts $layer random "not learnt"
done
