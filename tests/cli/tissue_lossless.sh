# Tissue of lossless pyramids of the same pixels: levels narrower than a tile, which OpenSlide
# scrambles, give what they give with tiles small enough for every level.
command -v vips >/dev/null || { echo "needs libvips-tools" >&2; exit 77; }
microtome phantom -o cohort --slides 1 --size 2048 --seed 3 --quiet
vips extract_area "$(echo cohort/slides/*.tiff)" pixels.v 200 0 1600 2048
for compression in none lzw deflate zstd; do
    for tile in 64 256; do
        vips tiffsave pixels.v $compression-$tile.tif --tile --pyramid --compression $compression \
            --tile-width $tile --tile-height $tile --xres 4000 --yres 4000
    done
done
microtome info lzw-256.tif | tail -n 1
for run in 1 2; do
    for slide in *-64.tif *-256.tif; do
        microtome tissue -q "$slide" -o masks-$run --overwrite --json --downsample 8
    done | grep -o '"fraction": [0-9.]*' | sort | uniq -c
done
cmp masks-1/none-64_mask.png masks-2/lzw-256_mask.png && echo "same mask"
