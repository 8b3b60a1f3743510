# A cohort of two slides, one of which cannot be read: done, recorded, kept, refused, made again.
microtome phantom -o c --slides 1 --size 1024 --seed 1 --quiet
printf 'not a slide' >bad.tiff
run() { microtome predict -o h --network scan_tiny --init-seed 1 --threads 2 "$@"; }
columns() { awk '{ print $1, $2, $3, $4, $NF }'; } # all but mean and max

echo "== first"
run c/slides bad.tiff --stride 64 --export none --quiet | columns
ls h h/patient_000_node_0
cut -d, -f2,3,6,7,8 h/slides.csv
echo "== kept"
run c/slides --stride 64 --export none --quiet | columns
echo "== another stride"
run c/slides --stride 128 --quiet || echo "exit $?"
echo "== another um/px in the slide list, and patches instead of the slide"
list() { printf 'slide,mpp\n%s,%s\n' "$(ls c/slides/*.tiff)" "$1" >list.csv; }
list 0.3 && { run list.csv --stride 64 --quiet || echo "exit $?"; }
list 0.25 && run list.csv --stride 64 --export none --quiet | columns
microtome extract c/slides -o p --dense --quiet >/dev/null
run p/*.h5 --stride 64 --quiet || echo "exit $?"
microtome predict p -o h2 --network scan_tiny || echo "exit $?"
echo "== overwritten, by windows, with exports"
run c/slides --stride 128 --mode window --overwrite --quiet --export tiles-csv | columns
head -n 1 h/patient_000_node_0/tiles.csv
grep -E '"(stride|origin|width|height|mode|classes|check)"' h/patient_000_node_0/heatmap.json
echo "== an export that is named many times is one"
run c/slides --stride 128 --mode window --quiet --export "$(printf 'tiles-csv,%.0s' $(seq 40))" | columns
echo "== a heatmap that has lost its scores is made again"
rm h/patient_000_node_0/heatmap.npy
run c/slides --stride 128 --mode window --quiet --export tiles-csv | columns
echo "== wrong usage"
run c/slides --export tiles-xml || echo "exit $?"
run c/slides --calibrate affine || echo "exit $?"
run c/slides --mode dense --calibrate affine --check-windows 7 || echo "exit $?"
microtome predict c/slides -o h || echo "exit $?"
microtome predict c/slides -o w --network vit_small_patch16_224 --mode dense || echo "exit $?"
microtome predict c/slides -o w --network scan_tiny --mpp 0.1 || echo "exit $?"
echo "== a slide that is damaged in its middle, and a sound one after it"
mkdir s && cp c/slides/*.tiff s/b.tiff && cp s/b.tiff s/a.tiff
head -c 40000 /dev/zero | dd of=s/a.tiff bs=1 seek=$(($(stat -c %s s/a.tiff) / 3)) conv=notrunc status=none
microtome predict s -o d --network scan_tiny --stride 64 --export none --quiet 2>err.txt | columns
grep -c 's/a.tiff' err.txt
