# What h5py and OpenSlide say about the stores: names, types, attributes, and every pixel.
python=/usr/bin/python3
$python -c 'import h5py, numpy, openslide' 2>/dev/null || { echo "needs python3-h5py and python3-openslide" >&2; exit 77; }
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 1 || exit
slide=$(ls cohort/slides/*.tiff)
for layout in blocks fda clam process; do
    microtome extract -q cohort/slides.csv -o $layout --dense --layout $layout --group 7 >/dev/null || exit
done
microtome extract -q cohort/slides.csv -o random --random 8 --patch 96 --seed 2 >/dev/null || exit
$python "$SOURCE/tests/cli/check_stores.py" "$slide"
