# predict opens a slide once, and takes its identity before and after: as tissue, which does just that;
# of the files that it writes it reads the heatmap, for the exports, and nothing else. Where all is
# there, it takes the identity alone.
command -v strace >/dev/null || { echo "needs strace" >&2; exit 77; }
export ASAN_OPTIONS=detect_leaks=0 # which cannot be under strace
strace -o trace true 2>/dev/null || { echo "strace is not allowed here" >&2; exit 77; }
microtome phantom -q -o cohort --slides 1 --size 1024 --seed 4 || exit
slide=$(ls cohort/slides/*.tiff)
name=$(basename "$slide" .tiff)
# opens COMMAND...: into the file opens, what it opened for reading
opens() {
    strace -f -e trace=openat -o trace microtome "$@" -q --threads 1 >/dev/null || exit
    grep -v ENOENT trace | grep O_RDONLY | grep -v O_DIRECTORY | grep -o '"[^"]*"' | tr -d '"' >opens
}
count() { grep -c "^$1\$" opens; }
predict() { opens predict "$slide" -o heat --network scan_tiny --stride 32; }
opens tissue "$slide" -o masks
once=$(count "$slide")
predict
[ "$(count "$slide")" -eq "$once" ] || echo "the slide is opened $(count "$slide") times, by tissue $once times"
for file in heatmap.json heatmap.npy plan.json tissue.png exports.json; do
    echo "first: $file $(count "heat/$name/$file")"
done
predict
echo "kept: slide $(count "$slide")"
for file in heatmap.json heatmap.npy plan.json tissue.png exports.json; do
    echo "kept: $file $(count "heat/$name/$file")"
done
