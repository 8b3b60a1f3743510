# What cannot be: the message, and the others are done.
python=/usr/bin/python3
$python -c 'import numpy, PIL' 2>/dev/null || { echo "needs python3-numpy and python3-pil" >&2; exit 77; }
$python - <<'P'
import os
import numpy
from PIL import Image
os.makedirs("images"), os.makedirs("labels")
white = numpy.full((60, 80, 3), 240, numpy.uint8)
one = white.copy()
y, x = numpy.mgrid[:60, :80]
one[(y - 30) ** 2 + (x - 40) ** 2 < 144] = (90, 60, 150)
Image.fromarray(white).save("images/constant.png")
Image.fromarray(one).save("images/one.png")
Image.fromarray(numpy.zeros((30, 70), numpy.uint8)).save("labels/one.png")
Image.fromarray(white[:5, :5]).save("labels/constant.png")
open("images/broken.png", "wb").write(open("images/one.png", "rb").read()[:90])
P
try() { "$@"; echo "exit $?"; }
echo "--- one nucleus, none, and a file that is damaged"
try microtome nuclei -q images -o out --slide-mpp 0.25
cut -d, -f2,3,5 out/slides.csv
cat out/constant_nuclei.csv
[ -e out/constant_labels.png ] && ls out | grep -c broken
echo "--- labels that do not fit"
try microtome nuclei -q images/one.png images/constant.png -o labelled --labels labels --slide-mpp 0.25
try microtome nuclei -q images/one.png -o labelled2 --labels nowhere --slide-mpp 0.25
echo "--- wrong options"
try microtome nuclei -q images/one.png -o o
try microtome nuclei -q images/one.png -o o --slide-mpp 3
try microtome nuclei -q images/one.png -o o --slide-mpp 3 --mpp 0.5
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --settings size=3
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --settings level=high
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --settings level=7
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --settings min_area_um2=50,max_area_um2=20
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --settings level=0.4 --labels labels
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --settings min_area_um2=9,level=0.4 --model any
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --truth labels --no-label-images
try microtome nuclei -q images/one.png -o o --slide-mpp 0.25 --omit rain
try microtome nuclei -q nothing -o o
echo "--- a label image that was edited since"
microtome nuclei -q images/one.png -o edited --slide-mpp 0.25
$python -c '
import numpy
from PIL import Image
labels = numpy.array(Image.open("edited/one_labels.png"))
labels[0, 0] = 60000
Image.fromarray(labels).save("edited/one_labels.png")'
mkdir same && cp edited/one_nuclei.geojson same
try microtome nuclei -q images/one.png -o edited --slide-mpp 0.25 --truth same
echo "--- other options: only those are shown"
try microtome nuclei -q images/one.png -o edited --slide-mpp 0.25 --settings level=0.5,window_um=40
echo "--- a truth without the image's, and an image without labels"
try microtome nuclei -q images/one.png -o out2 --slide-mpp 0.25 --truth images
ls out2
