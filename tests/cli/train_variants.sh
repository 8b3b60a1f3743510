# Heads and norms: a model is trained with them, config.json remembers them, and its weights and its
# ONNX file give the same scores.
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
microtome extract -q cohort/slides.csv -o raw --random 12 --patch 144 >/dev/null || exit
train() { # RUN SETTINGS...
    microtome train -q --threads 1 -o "$1" --set data.train=raw --set network.name=scan_tiny --set network.input_px=144 \
        --set train.epochs=1 --set train.batch=8 --set schedule.learning_rate=0.001 --set data.val_fraction=0.5 "${@:2}" >/dev/null
}
scores() { microtome model run raw -q --model "$1" | sed 's/.*  normal/normal/'; }
equal() { # RUN
    grep -E '"(head|norm)"' "$1/config.json"
    scores "$1" >safetensors.txt
    mkdir -p "$1-onnx" && cp "$1/model.onnx" "$1-onnx/"
    scores "$1-onnx/model.onnx" >onnx.txt
    paste safetensors.txt onnx.txt | awk '{ d = $2 - $6; if (d < 0) d = -d; if (d > 2e-5) bad++ } END { print NR, "patches,", bad + 0, "differ" }'
}
for variant in "attention ws" "classes batch" "lse fixup" "max frozen"; do
    # shellcheck disable=SC2086
    set -- $variant
    echo "$1, $2"
    train "$1" --set network.head="$1" --set network.norm="$2" || exit
    equal "$1"
done

# weights with batch norm are a start for frozen, but not for what has other parameters
try() {
    "$@" 2>err.txt
    echo "exit $?: $(tail -n 1 err.txt)"
}
try train start
try train thawed --set network.norm=frozen --set network.weights=start/model.safetensors
try train other --set network.norm=ws --set network.weights=start/model.safetensors
try train again --set network.norm=ws --set network.weights=attention/model.safetensors
try train other --set network.name=densenet121 --set network.norm=ws
try train other --set network.name=vgg16_bn --set network.head=max
try train other --set network.name=googlenet --set network.norm=fixup
try train other --set network.head=mode
try microtome model show --model lse --head mean
try microtome predict -q cohort/slides/*000*.tiff -o heat --model lse --mode dense --export none
sed -i 's/"head": "lse"/"head": "mode"/' lse/config.json
try microtome model run raw --model lse
