# Resolutions that no pixel of the slide has, or that contradict the file, are not taken in silence.
set -e
microtome phantom -o cohort --slides 1 --size 1024 --seed 1 --quiet
mv cohort/slides/*.tiff slide.tiff
extract() { microtome extract -q --random 2 --patch 32 --label-rule none "$@" >/dev/null; }
extract slide.tiff -o finer --mpp 0.125 || echo "exit $?"
ls finer/*.h5 2>/dev/null || echo "no store"
extract slide.tiff -o near --mpp 0.21 && echo "within a fifth"
extract slide.tiff -o enlarged --mpp 0.125 --mpp-tolerance 1 && echo "enlarged when asked to"
extract slide.tiff -o both --mpp 0.5 --level 0 || echo "exit $?"
printf 'slide,mpp\nslide.tiff,25\n' >list.csv
extract list.csv -o listed || echo "exit $?"
microtome tissue -q list.csv -o listed >/dev/null || echo "exit $?"
extract list.csv -o told --slide-mpp 1 && echo "the option decides"
microtome info list.csv | grep resolution
