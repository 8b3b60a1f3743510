# What is in a slide: text, JSON, a thumbnail; several slides of which some are bad.
microtome phantom -q -o cohort --slides 1 --size 1024 || exit
cp cohort/slides/*.tiff good.tiff
microtome info good.tiff --thumbnail thumb.png
head -c 8 thumb.png | od -An -c | tr -d ' '
microtome info --slide-mpp 0.5 good.tiff | grep resolution
microtome info --json good.tiff >one.json && /usr/bin/env python3 -m json.tool one.json >/dev/null && echo valid
: >empty.svs
echo "just text" >text.svs
head -c 5000 good.tiff >truncated.tiff
mkdir folder.svs none
for bad in empty.svs text.svs truncated.tiff gone.svs folder.svs none; do
    microtome info $bad
    echo "exit $?"
done
microtome info empty.svs good.tiff text.svs | sed -n 1p
microtome info --json gone.svs good.tiff >two.json 2>/dev/null
echo "exit $?"
grep -c '"path"' two.json
printf 'slide,mpp\ngood.tiff,0.33\n' >list.csv
microtome info list.csv | grep resolution
printf 'file,mpp\ngood.tiff,0.33\n' >list.csv
microtome info list.csv
printf 'slide;mpp\ngood.tiff;0,33\n' >list.csv
microtome info list.csv
printf 'Slide\tMPP\ngood.tiff\t0.33\n' >list.tsv
microtome info list.tsv | grep resolution
microtome info --thumbnail t.png good.tiff good.tiff
echo "exit $?"
microtome info --thumbnail no-such-folder/t.png good.tiff >/dev/null
echo "exit $?"
microtome info --jsn good.tiff
