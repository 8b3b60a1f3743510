# Tissue of lossless pyramids of the same pixels: levels smaller than a tile, which OpenSlide
# scrambles, give what they give with tiles small enough for every level.
command -v vips >/dev/null || { echo "needs libvips-tools" >&2; exit 77; }
microtome phantom -o cohort --slides 1 --size 2048 --seed 3 --quiet
vips extract_area "$(echo cohort/slides/*.tiff)" pixels.v 200 0 1600 2048
save() {
    vips tiffsave pixels.v "$1-$2.tif" --tile --pyramid --compression "$1" --tile-width "$2" \
        --tile-height "$2" --xres 4000 --yres 4000
}
save none 64
save lzw 256
save deflate 256
microtome info lzw-256.tif | tail -n 1
for run in 1 2; do
    microtome tissue -q ./*.tif -o masks-$run --json --downsample 8 |
        grep -o '"fraction": [0-9.]*' | sort | uniq -c
done
vips rawsave masks-1/none-64_mask.png one.raw # a mask's comment names its slide
vips rawsave masks-2/lzw-256_mask.png other.raw
cmp one.raw other.raw && echo "same mask"
