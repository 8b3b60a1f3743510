# The same drawing in every format gives the same labels; files are found by the slide's name; what
# predict and tissue write opens again.
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 1 || exit
mkdir slides && cp cohort/slides/*.tiff slides/a.tiff
cat >make.py <<'END'
import json, struct, zlib
outer, hole = [(256, 256), (1792, 256), (1792, 1536), (256, 1536)], [(768, 512), (1280, 512), (1280, 1024), (768, 1024)]
ring = lambda points: [list(p) for p in points] + [list(points[0])]
json.dump({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring(outer), ring(hole)]},
           "properties": {"objectType": "annotation", "classification": {"name": "Cancer, grade 2"}}}, open("a.geojson", "w"))
corners = lambda kind, negative, points: '<Region Type="%s" HasEndcaps="0" NegativeROA="%d"><Vertices>%s</Vertices></Region>' % (
    kind, negative, "".join('<V X="%d" Y="%d" />' % p for p in points))
open("a.annotations", "w").write('<Annotations><Annotation Name="Cancer, grade 2"><Regions>%s%s</Regions></Annotation></Annotations>' % (
    corners("Polygon", 0, outer), corners("Rectangle", 1, (hole[0], hole[2]))))
side = 256  # an eighth of the slide
inside = lambda x, y: 32 <= x < 224 and 32 <= y < 192 and not (96 <= x < 160 and 64 <= y < 128)
rows = [[2 if inside(x, y) else 0 for x in range(side)] for y in range(side)]
chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
open("a.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
                          chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b""))
counts, now = [0], False
for x in range(side):
    for y in range(side):
        if inside(x, y) != now:
            counts.append(0)
            now = not now
        counts[-1] += 1
json.dump({"images": [{"id": 1, "file_name": "b.tiff", "width": side, "height": side},
                      {"id": 2, "file_name": "slides/a.tiff", "width": side, "height": side}],
           "categories": [{"id": 2, "name": "Cancer, grade 2"}],
           "annotations": [{"id": 1, "image_id": 2, "category_id": 2, "segmentation": {"size": [side, side], "counts": counts}}]},
          open("a.json", "w"))
END
python3 make.py || exit
table() { sed -n '2,$s/  */ /gp'; }
run() { microtome extract -q slides -o "$@" --dense --patch 128 --margin 0; }
map='cancer\, grade 2=tumor,2=tumor'
for ending in geojson annotations json png; do
    mkdir $ending && cp a.$ending $ending/
    run out-$ending --annotations $ending --class-map "$map" | table
done
echo "--- the slide's extension may stay; two files are one too many"
mkdir kept && cp a.geojson kept/a.tiff.geojson
run out-kept --annotations kept --class-map "$map" | table
cp a.png kept/
run out-two --annotations kept --class-map "$map"
echo "--- the class of a label image is its number"
run out-unknown --annotations png
printf 'classes: [stroma, tumor]\nnames: {2: stroma}\nunlabelled: omit\n' >map.yaml
run out-named --annotations png --class-map map.yaml | sed 's/  */ /g'
echo "--- one COCO file for several slides; any other file is one slide's"
run out-coco --annotations a.json --class-map "$map" | table
run out-file --annotations a.geojson --class-map "$map" | table
cp slides/a.tiff slides/b.tiff
run out-both --annotations a.json --class-map "$map" | table
run out-one --annotations a.geojson --class-map "$map"
run out-none --annotations absent.json --class-map "$map"
rm slides/b.tiff
echo "--- drawings of other slides"
sed 's/a\.tiff/c.tiff/' a.json >json/a.json
run out-other --annotations json --class-map "$map" 2>&1 >/dev/null | sed 's/;.*it has/; it has/'
python3 - <<'END'
import struct, zlib
data = bytearray(open("a.png", "rb").read())
data[20:24] = struct.pack(">I", 255)
data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
open("png/a.png", "wb").write(data)
data[20:24] = struct.pack(">I", 128)
data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
open("kept/a.png", "wb").write(data)
END
rm kept/a.tiff.geojson
run out-less --annotations png --class-map "$map" | table
run out-half --annotations kept --class-map "$map" 2>&1 >/dev/null
echo "--- what we write ourselves"
microtome predict -q slides -o scores --network scan_tiny --init-seed 1 --stride 64 --threshold 0.01 --export regions >/dev/null
run out-regions --annotations scores --class-map class1=tumor | awk 'NR > 1 { print $1, $2, ($3 > 0 ? "tumor" : "none"), $NF }'
microtome tissue -q slides -o tissue >/dev/null
printf 'slide,annotation\nslides/a.tiff,tissue/a_tissue.geojson\n' >list.csv
microtome extract -q list.csv -o out-tissue --dense --patch 128 --margin 0 --class-map Tissue=tumor | awk 'NR > 1 { print $1, $2, ($3 > 0 ? "tumor" : "none"), $NF }'
exit 0
