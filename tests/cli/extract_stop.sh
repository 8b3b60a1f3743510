# Killed in the middle of a store: no store, and the next run makes the same bytes as one that was
# left alone. Ctrl-C: no half file either. Two runs at once in one folder: the second one refuses.
set -m # so that background jobs listen to SIGINT
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 1 || exit
name=$(basename cohort/slides/*.tiff .tiff)
cut="microtome extract -q cohort/slides.csv --dense --patch 64 --margin 96 --stride 32 --layout fda
    --threads 1"
# Until the pixels are being written; the signal ($1) comes then. Exit code 0: it was too late.
stop() {
    $cut -o "$2" >/dev/null 2>"$2.txt" &
    until ls "$2"/*.h5* >/dev/null 2>&1; do sleep 0.005; done
    kill "$1" $! 2>/dev/null
    wait $! 2>/dev/null
}
$cut -o whole >/dev/null

stop -KILL killed && echo "not killed: the run was over"
ls killed
$cut -o killed | awk 'NR > 1 { print $NF }'
cmp whole/$name.h5 killed/$name.h5
ls killed

stop -INT stopped
echo "exit $?"
cat stopped.txt
ls stopped
$cut -o stopped | awk 'NR > 1 { print $NF }'
cmp whole/$name.h5 stopped/$name.h5

mkdir both # claimed by somebody else
flock both $cut -o both
echo "exit $?"
ls both
rm -r whole killed stopped both # they are large
