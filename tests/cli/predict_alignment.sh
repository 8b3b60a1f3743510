# Scores lie where they belong, to the pixel, in both modes and at strides above and below the window.
python=/usr/bin/python3
$python -c 'import numpy, openslide, PIL, tifffile, torch' 2>/dev/null ||
    { echo "needs python3-torch, python3-tifffile and python3-openslide" >&2; exit 77; }
$python "$SOURCE/tests/cli/check_alignment.py" make model || exit
microtome phantom -q -o cohort --slides 1 --size 1800 --seed 5 || exit
slide=$(ls cohort/slides/*.tiff)
name=$(basename "$slide" .tiff)
for run in "window 16" "window 48" "dense 16" "dense 8"; do
    set -- $run
    microtome predict -q "$slide" -o "$1$2" --model model/model.onnx --mode "$1" --stride "$2" \
        --export ome-tiff,overlay >/dev/null || exit
done
$python "$SOURCE/tests/cli/check_alignment.py" check "$slide" {window16,window48,dense16,dense8}/"$name"
