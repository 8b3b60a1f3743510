# A model is used as it was trained: scores of a heatmap's windows are those of the same patches in
# `model run`; images, tar files and stores give the same; other stains are refused.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
slide=$(ls cohort/slides/*.tiff | head -n 1)
name=$(basename "$slide" .tiff)
microtome extract -q "$slide" -o dense --dense --patch 144 --margin 3 >/dev/null || exit
microtome extract -q cohort/slides.csv -o raw --random 16 --patch 150 >/dev/null || exit
microtome extract -q cohort/slides.csv -o stained --random 16 --patch 150 --stain macenko >/dev/null || exit
train() { # STORES RUN SETTINGS...
    microtome train -q --threads 1 -o "$2" --set data.train="$1" --set network.name=scan_tiny --set network.input_px=144 \
        --set train.epochs=1 --set train.batch=8 --set schedule.learning_rate=0.005 --set data.val_fraction=0.5 \
        "${@:3}" >/dev/null || exit
}
# the windows of a heatmap are the patches of a dense grid, which is cropped or resized alike
equal() { # RUN OPTIONS...
    folder="heat-$*"
    microtome predict -q "$slide" -o "$folder" --model "$1" --stride 144 --tile 144 --export tiles-csv \
        --tissue-fraction 0 "${@:2}" >/dev/null || return
    microtome model run "$dense/$name.h5" --model "$1" -o "$folder.csv" -q "${@:2}" >/dev/null || return
    awk -F, 'FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "prob_tumor") c = i; next }
        NR == FNR { s[$1 "," $2] = $c; next }
        { key = ($3 + 3) "," ($4 + 3) } # the corner of the tile, inside of its margin
        key in s { d = $c - s[key]; d = d < 0 ? -d : d; n++; worst = d > worst ? d : worst }
        END { print (n > 30) ? "many" : n, (worst < 1e-6) ? "equal" : "differ by " worst }' \
        "$folder/$name/tiles.csv" "$folder.csv"
}
dense=dense
train raw crop
equal crop # run densely
equal crop --tta
train raw resized --set data.resize_px=160
equal resized
equal resized --tta

# a model of normalised stores asks for the same stains, of slides, stores and images
train stained stains
microtome extract -q "$slide" -o dense-stained --dense --patch 144 --margin 3 --stain macenko >/dev/null || exit
dense=dense-stained
equal stains
dense=dense
sed -n 's/ *"fitted_on"/"fitted_on"/p' stains/config.json
microtome predict "$slide" -o heat-note --model stains --stride 512 --export none 2>&1 >/dev/null | grep "as in the model's"
try() {
    "$@" >/dev/null 2>err.txt
    echo "exit $?: $(tail -n 1 err.txt)"
}
try microtome predict -q "$slide" -o heat-other --model stains --stride 512 --export none --stain none
try microtome predict -q "$slide" -o heat-other --model stains --stride 512 --export none --stain none --any-stain
try microtome predict -q "$slide" -o heat-raw --model crop --stride 512 --export none --stain macenko
try microtome predict -q "dense/$name.h5" -o heat-store --model stains --stride 512 --export none
grep -o 'holds raw pixels, but .*' heat-store/slides.csv
try microtome model run "raw/$name.h5" --model stains
try microtome model run "stained/$name.h5" --model crop
try microtome model run "stained/$name.h5" --model stains -q
try microtome model run "raw/$name.h5" --model stains --any-stain -q

# stains that were fitted patch by patch are fitted so in use, which a heatmap cannot do
train raw patchwise --set data.stain=macenko 2>err.txt
cat err.txt
grep -o '"fitted_on": "patch"' patchwise/config.json
try microtome model run "raw/$name.h5" --model patchwise -q
try microtome predict -q "$slide" -o heat-patchwise --model patchwise --stride 512 --export none
try microtome predict -q "$slide" -o heat-patchwise --model patchwise --stride 512 --export none --stain macenko

# images, folders, tar files and stores; a table for evaluate roc
mkdir -p images/normal images/tumor
microtome info "$slide" --thumbnail images/normal/p1_1_1.png >/dev/null
cp images/normal/p1_1_1.png images/tumor/p2_1_1.png
tar -cf images.tar -C images normal/p1_1_1.png tumor/p2_1_1.png
set -- --model resized -q
microtome model run images/normal/p1_1_1.png "$@" | sed 's/.*  normal/normal/' >one
microtome model run images "$@" | sed 's/.*  normal/normal/' | uniq | cmp - one && echo "a folder gives the same"
microtome model run images.tar "$@" --json | grep -o '"label": .*'
microtome model run images.tar images "raw/$name.h5" "$@" -o all.csv | sed 's/^[0-9]* //'
head -n 1 all.csv
grep -c "^raw/$name.h5 patch [0-9]*,$name,[0-9]*,[0-9]*,patient_[0-9]*,[01]," all.csv
microtome evaluate roc all.csv -q --slide sample --score prob_tumor --bootstrap 0 >/dev/null && echo "evaluate roc takes it"
try microtome model run images "$@" -o all.csv
try microtome model run images "$@" -o all.txt
: >images/empty.png
try microtome model run images "$@" -o some.csv
wc -l <some.csv
