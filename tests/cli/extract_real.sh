# The real Aperio slide in every layout, with stains normalised.
slide=${SHARED:?}/data/slides/CMU-1-Small-Region.svs
[ -f "$slide" ] || { echo "the real slides are not here" >&2; exit 77; }
for layout in blocks fda clam process; do
    microtome extract -q "$slide" -o $layout --dense --layout $layout | sed -n '2s/  */ /gp'
done
for stain in reinhard macenko vahadane; do
    microtome extract -q "$slide" -o $stain --random 20 --patch 224 --stain $stain --seed 1 \
        --template "$SHARED/data/camelyon16/stain_template.png" --preview | sed -n '2s/  */ /gp'
done
microtome extract -q "$slide" -o coarse --dense --mpp 2 --patch 1000 --margin 0 | sed -n '2s/  */ /gp'
