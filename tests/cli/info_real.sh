# A real Aperio slide.
slide=${SHARED:-}/data/slides/CMU-1-Small-Region.svs
[ -f "$slide" ] || { echo "no real slide in SHARED" >&2; exit 77; }
ln -s "$slide" slide.svs
microtome info slide.svs
