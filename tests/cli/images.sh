# Plain images as slides: every kind of pixel against PIL and tifffile, resolutions, what is refused,
# what is damaged, and which images of a folder are slides.
/usr/bin/python3 -c 'import numpy, tifffile, PIL' 2>/dev/null || { echo "needs Python with PIL and tifffile" >&2; exit 77; }
mkdir kinds && /usr/bin/python3 "$SOURCE/tests/cli/check_images.py" "$(command -v microtome)" kinds || exit
echo "--- refused"
for name in cmyk.jpg rotated.jpg rotated.tif float.tif bits1.tif five.tif pages.tif cmyk.tif; do microtome info refused/$name; done 2>&1
echo "--- damaged"
head -c 5000 kinds/rgb.png >cut.png
head -c 9000 kinds/baseline.jpg >cut.jpg
head -c 9000 kinds/progressive.jpg >cut_progressive.jpg
head -c 60000 kinds/bigtiff.tif >cut.tif
/usr/bin/python3 - <<'END'
import numpy, tifffile
from PIL import Image
px = numpy.asarray(Image.open("kinds/rgb.png").convert("RGB"))
Image.fromarray(px).save("damaged.tif", compression="jpeg") # libtiff only warns
data = bytearray(open("damaged.tif", "rb").read())
data[len(data) // 2:len(data) // 2 + 40] = bytes(40)
open("damaged.tif", "wb").write(data)
Image.fromarray(px).save("checksum.tif", compression="tiff_adobe_deflate") # libtiff decodes garbage
data = bytearray(open("checksum.tif", "rb").read())
with tifffile.TiffFile("checksum.tif") as tiff:
    at = tiff.pages[0].dataoffsets[0] + tiff.pages[0].databytecounts[0] - 1
data[at] ^= 1
open("checksum.tif", "wb").write(data)
with tifffile.TiffWriter("whole.tif") as writer:
    writer.write(px, subifds=1, tile=(64, 64), photometric="rgb", metadata=None)
    writer.write(px[::2, ::2], subfiletype=1, tile=(64, 64), photometric="rgb", metadata=None)
    writer.write(px[::9, ::9], photometric="rgb", metadata=None)
data = open("whole.tif", "rb").read()
open("cut_subifd.tif", "wb").write(data[:len(data) // 3])
with tifffile.TiffWriter("thumbnail_first.tif") as writer:
    writer.write(px[::9, ::9], photometric="rgb", metadata=None)
    writer.write(px, tile=(64, 64), photometric="rgb", metadata=None)
cmyk = numpy.asarray(Image.fromarray(px).convert("CMYK"))
for name, turned in ("upright.tif", 1), ("turned.tif", 3): # read by libtiff, tile by tile
    tifffile.imwrite(name, cmyk, tile=(64, 64), photometric="separated", extratags=[(274, "H", 1, turned, True)])
END
for name in cut.png cut.jpg cut_progressive.jpg cut.tif damaged.tif checksum.tif cut_subifd.tif thumbnail_first.tif; do microtome info --thumbnail t.png $name; done 2>&1 | grep -v '^  '
for name in upright turned; do microtome info --thumbnail $name.png $name.tif >/dev/null; done
cmp upright.png turned.png && echo "tiles as they are stored"
echo "--- folders"
mkdir fields slides results
cp kinds/rgb.png fields/a.png
cp kinds/baseline.jpg fields/b.JPG
cp kinds/grey.png fields/a_mask.png
cp kinds/grey.png fields/b_Label.png
cp kinds/grey.png fields/a_quality.png
cp fields/*.* slides/
cp kinds/lzw.tif slides/c.tif
cp fields/* results/
echo '{}' >results/run.json
for folder in fields slides results; do echo "$folder:"; microtome info $folder | grep '^[a-z]'; done 2>&1
microtome info fields/a_mask.png 'results/b*.JPG' | grep '^[a-z]'
