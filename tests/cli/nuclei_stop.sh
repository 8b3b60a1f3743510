# Killed or stopped in the middle of a slide: no half results, and the next run makes the same bytes
# from the parts that are there. A damaged part, and one of other options.
set -m # so that background jobs listen to SIGINT
microtome phantom -q -o c --slides 1 --size 2048 --seed 1 || exit
name=$(basename c/slides/*.tiff .tiff)
find="microtome nuclei -q c/slides --tile 256 --group 1 --threads 1 --no-label-images --mpp 0.5"
stop() {
    $find -o "$2" >/dev/null 2>"$2.txt" &
    until ls "$2"/parts/*/2.nuclei >/dev/null 2>&1; do sleep 0.005; done
    kill "$1" $! 2>/dev/null
    wait $! 2>/dev/null
}
same() { cmp whole/${name}_nuclei.csv "$1/${name}_nuclei.csv" && cmp whole/${name}_nuclei.geojson "$1/${name}_nuclei.geojson" && echo "the same"; }
$find -o whole >/dev/null
stop -KILL killed && echo "not killed: the run was over"
ls killed
stop -INT stopped
echo "exit $?"
cat stopped.txt
ls stopped
$find -o killed >/dev/null && same killed
$find -o stopped >/dev/null && same stopped
ls killed

echo "--- other options, and damage"
stop -KILL half
stamp=$(stat -c %Y.%i half/parts/$name/1.nuclei)
$find -o half --settings level=0.6 2>&1 | sed -E 's/(then|now): .*level=([0-9.]+).*/\1/'
head -c 100 half/parts/$name/0.nuclei >cut && cp cut half/parts/$name/0.nuclei
$find -o half
echo "exit $?"
[ "$(stat -c %Y.%i half/parts/$name/1.nuclei)" = "$stamp" ] && echo "a part that exists is kept"
rm half/parts/$name/0.nuclei
$find -o half >/dev/null && same half
