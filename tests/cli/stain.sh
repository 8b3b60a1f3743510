# The stains of a slide are fitted once, on its tissue: a pixel is normalised to the same bytes in any
# patch of any size, grid or seed, and a heatmap's fit is that of the stores.
/usr/bin/python3 -c "import h5py" 2>/dev/null || { echo "python3-h5py is not installed" >&2; exit 77; }
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 4 || exit
extract="microtome extract -q cohort/slides --label-rule none --layout clam --white 1 --black 1"
for method in macenko reinhard vahadane; do
    $extract -o $method/large --dense --patch 256 --margin 0 --stain $method >/dev/null || exit
    $extract -o $method/small --dense --patch 64 --margin 0 --stain $method --method ncrf >/dev/null || exit
    $extract -o $method/seed1 --random 9 --patch 100 --seed 1 --stain $method >/dev/null || exit
    $extract -o $method/seed2 --random 9 --patch 90 --seed 2 --stain $method --mpp 0.7 >/dev/null || exit
    microtome predict -q cohort/slides -o $method/maps --network scan_tiny --stride 256 --stain $method \
        --export none >/dev/null || exit
done
/usr/bin/python3 - <<'PY'
import glob, json
import h5py, numpy as np
for method in ("macenko", "reinhard", "vahadane"):
    stores = {name: h5py.File(glob.glob(f"{method}/{name}/*.h5")[0]) for name in ("large", "small", "seed1", "seed2")}
    def fit(file):
        return np.concatenate([np.ravel(file.attrs[k]) for k in ("stain_matrix", "stain_p99", "stain_lab_mean", "stain_lab_std")])
    fits = [fit(file) for file in stores.values()]
    fits.append(np.array(json.load(open(glob.glob(f"{method}/maps/*/heatmap.json")[0]))["stain"]["values"]))
    gap = max(np.abs(f - fits[0]).max() for f in fits)
    print(method, "one fit" if gap < 1e-9 else f"fits differ by {gap:.3g}")
    large, small = stores["large"], stores["small"]
    where = {tuple(c): i for i, c in enumerate(small["coords"][:])}
    worst = compared = 0
    for i, (x, y) in enumerate(large["coords"][:]):
        j = where.get((x + 64, y + 64))
        if j is not None:
            a, b = large["imgs"][i, 64:128, 64:128].astype(int), small["imgs"][j].astype(int)
            worst, compared = max(worst, np.abs(a - b).max()), compared + 1
    print("pixels differ by", worst if compared > 5 else "nothing compared")
PY
