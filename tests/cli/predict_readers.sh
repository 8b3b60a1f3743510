# What numpy, tifffile, libvips, shapely, PIL and OpenSlide say about the outputs of predict: a
# pyramid of two levels; and one class at a resolution that is no whole part of the slide's.
python=/usr/bin/python3
$python -c 'import numpy, openslide, PIL, shapely, tifffile' 2>/dev/null && command -v vips >/dev/null ||
    { echo "needs python3-tifffile, python3-shapely, python3-openslide and libvips-tools" >&2; exit 77; }
microtome phantom -q -o cohort --slides 1 --size 2100 --seed 4 || exit
slide=$(ls cohort/slides/*.tiff)
name=$(basename "$slide" .tiff)
microtome predict -q "$slide" -o fine --network scan_tiny --init-seed 7 --stride 4 >/dev/null || exit
$python "$SOURCE/tests/cli/check_heatmap.py" "$slide" "fine/$name" || exit
microtome predict -q "$slide" -o coarse --network scan_tiny --init-seed 7 --classes 1 --mpp 0.37 --stride 48 \
    --tile 100 >/dev/null || exit
$python "$SOURCE/tests/cli/check_heatmap.py" "$slide" "coarse/$name"
