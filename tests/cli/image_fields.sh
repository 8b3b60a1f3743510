# Fields cut from a slide, from extraction to heatmaps; a large image in bands; levels as they are.
python=/usr/bin/python3
$python -c 'import h5py, numpy, openslide, PIL' 2>/dev/null || { echo "needs python3-h5py, python3-openslide and python3-pil" >&2; exit 77; }
command -v vips >/dev/null || { echo "needs vips" >&2; exit 77; }
check() { $python "$SOURCE/tests/cli/check_fields.py" "$@"; }
columns() { awk '{ print $1, $2, $3, $4, $NF }'; } # all but mean and max
microtome phantom -q -o c --slides 1 --size 2048 --seed 1 || exit
slide=$(ls c/slides/*.tiff)

echo "== a folder of fields"
mkdir fields
vips crop "$slide" fields/a.png 900 900 300 300
vips crop "$slide" fields/b.png 700 1000 100 80
vips crop "$slide" fields/b_mask.png 700 1000 100 80
microtome tissue -q fields -o tissue --method none --slide-mpp 0.25
microtome extract -q fields -o patches --dense --patch 64 --margin 16 --method none --slide-mpp 0.25 --layout clam \
    --preview | columns
check patches patches/a.h5 fields/a.png
check patches patches/b.h5 fields/b.png
microtome predict -q fields -o heat --network scan_tiny --init-seed 1 --method none --slide-mpp 0.25 | columns
ls heat/b
microtome predict -q fields -o masked --network scan_tiny --init-seed 1 --tissue tissue --slide-mpp 0.25 --export none | columns
cmp heat/a/heatmap.npy masked/a/heatmap.npy && cmp heat/b/heatmap.npy masked/b/heatmap.npy && echo "same scores"
echo "== the same pixels in other files"
mkdir others
vips copy fields/a.png others/a.tif[compression=lzw]
vips copy fields/a.png others/tiled.tif[compression=deflate,tile]
vips copy fields/a.png others/interlaced.png[interlace]
microtome predict -q others -o other --network scan_tiny --init-seed 1 --method none --slide-mpp 0.25 --export none | columns
microtome predict -q others/interlaced.png -o other2 --network scan_tiny --init-seed 1 --method none --slide-mpp 0.25 --export none | columns
for heatmap in other/a other/tiled other2/interlaced; do cmp heat/a/heatmap.npy $heatmap/heatmap.npy; done && echo "same scores"
echo "== um/px of the file, which vips keeps, and without"
microtome extract -q fields/a.png -o known --dense --mpp 0.5 --method none | columns
mkdir unknown && vips copy fields/a.png unknown/a.png --xres 1 --yres 1
microtome extract -q unknown/a.png -o half --dense --mpp 0.5 --method none
microtome predict -q unknown/a.png -o level0 --network scan_tiny --init-seed 1 --method none --level 0 --export none | columns
cmp heat/a/heatmap.npy level0/a/heatmap.npy && echo "same scores"

echo "== 72 megapixels in bands"
vips replicate "$slide" wide.v 5 4 && vips crop wide.v large.jpg[Q=80] 0 0 9000 8000 && rm wide.v
microtome info large.jpg | grep level
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] && most=150 || most=2000 # sanitizers need more
check peak $most microtome extract -q large.jpg -o large --random 20 --patch 128 --label-rule none --layout clam --slide-mpp 0.25
check patches large/large.h5 large.jpg
du -m large/cache/*.tiles | sort -n | cut -f1
before=$(stat -c %i large/cache/*.tiles)
microtome predict -q large.jpg -o large --cache large/cache --network scan_tiny --init-seed 1 --stride 512 --slide-mpp 0.25 \
    --export none | columns
[ "$(stat -c %i large/cache/*.tiles)" = "$before" ] && echo "the same caches"
echo "no folder" >file
microtome tissue -q large.jpg -o none --cache file --slide-mpp 0.25
head -c 500000 large.jpg >cut.jpg
microtome tissue -q cut.jpg -o none --slide-mpp 0.25
ls none/cache

echo "== levels as they are"
for level in 1 2; do
    check level "$slide" $level level$level.png
    microtome extract -q "$slide" -o cut$level --dense --patch 64 --margin 0 --method none --level $level --layout clam |
        columns
    microtome extract -q level$level.png -o png$level --dense --patch 64 --margin 0 --method none --layout clam | columns
    check patches png$level/level$level.h5 level$level.png
    check same cut$level/*.h5 png$level/*.h5
    microtome predict -q "$slide" -o heat$level --network scan_tiny --init-seed 1 --method none --level $level --export none |
        columns
    microtome predict -q level$level.png -o heatpng$level --network scan_tiny --init-seed 1 --method none --export none |
        columns
    cmp heat$level/*/heatmap.npy heatpng$level/*/heatmap.npy && echo "same scores"
done
microtome predict -q "$slide" -o wrong --network scan_tiny --level 9 --export none
microtome predict -q "$slide" -o wrong --network scan_tiny --level 1 --mpp 0.5
