# Heatmaps and tables of tiles against annotations of two and of three classes.
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
make() { python3 "$SOURCE/tests/cli/make_heatmap.py" "$@"; }
draw() { # FILE NAME,X0,Y0,X1,Y1...: boxes in heatmap cells of 16 px
    python3 -c "import json, sys
def box(text):
    name, *at = text.split(',')
    x0, y0, x1, y1 = [16 * int(v) for v in at]
    return {'type': 'Feature', 'properties': {'classification': {'name': name}}, 'geometry': {'type': 'Polygon',
            'coordinates': [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]]}}
json.dump({'type': 'FeatureCollection', 'features': [box(b) for b in sys.argv[2:]]}, open(sys.argv[1], 'w'))" "$@"
}
three=stroma,lymphoid,tumor
# called: stroma 60 x 20, lymphoid 30 x 20, tumor the rest
make maps/a 60 40 $three 0,0,60,20,0.8,0 0,20,30,20,0.7,1 30,20,30,20,0.9,2
make maps/b 60 40 $three 0,0,60,40,0.8,0
mkdir truth
draw truth/a.geojson Stroma,0,0,60,10 Lymph,0,10,60,30 DCIS,40,20,60,40 Fold,50,30,60,40
map='Stroma=stroma,Lymph=lymphoid,DCIS=tumor,Fold=exclusion'
microtome evaluate confusion maps/a --truth truth --class-map "$map" -q --plot cells
microtome evaluate confusion maps --truth truth --class-map "$map" -q --csv 2>/dev/null
cat >map.yaml <<'END'
classes: [stroma, lymphoid, tumor]
names: {Stroma: stroma, Lymph: lymphoid, DCIS: tumor, Fold: exclusion}
precedence: [tumor, lymphoid, stroma]
unlabelled: stroma
END
microtome evaluate confusion maps --truth truth --class-map map.yaml -q --csv 2>/dev/null | tail -n 3
microtome evaluate confusion maps --truth truth --class-map "$map" -q --json 2>/dev/null | tail -n 6
mkdir same && draw same/a.geojson stroma,0,0,60,10 Lymphoid,0,10,60,30 Tumor,40,20,60,40
microtome evaluate confusion maps/a --truth same -q --csv 2>/dev/null | tail -n 1
python3 -c "import struct, sys, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
rows = b''.join(b'\\0' + bytes([1] * 60 if y < 10 else [2] * 60) for y in range(40))
open('label.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 60, 40, 8, 0, 0, 0, 0)) +
                              chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))"
mkdir labels && mv label.png labels/a.png
microtome evaluate confusion maps/a --truth labels --class-map '1=stroma,2=lymphoid,3=tumor' -q --csv 2>/dev/null | head -n 4
echo "--- pixels of one of the classes"
microtome evaluate pixels maps/a --class lymphoid --truth truth --class-map "$map" -q
microtome evaluate pixels maps/a --class necrosis --truth truth --class-map "$map" -q
microtome evaluate pixels maps/a --class lymphoid --truth truth --class-map 'Stroma=stroma,Lymph=other,DCIS=tumor,Fold=exclusion' -q
echo "--- two classes"
make two/a 60 40 normal,tumour 10,10,10,10,0.9 40,20,5,5,0.5
make one/a 60 40 tumor 10,10,10,10,0.9 40,20,5,5,0.5
echo '{"positive":[{"name":"t","vertices":[[160,160],[320,160],[320,240],[160,240]]}],"negative":[]}' >a.json
printf 'slide,annotation\na,a.json\n' >list.csv
microtome evaluate confusion two --truth list.csv -q --csv | sed -n 1,3p
microtome evaluate confusion two --truth list.csv -q --csv --threshold 0.6 | sed -n 1,3p
microtome evaluate confusion one --truth list.csv -q --csv | sed -n 1,3p
echo "--- two classes, of which one has another name, in any order"
make swapped/a 60 40 tumor,stroma 0,0,60,40,0.9,1 10,10,10,10,0.9,0
microtome evaluate confusion swapped --truth list.csv -q --csv --class-map Stroma=ignore | sed -n 1,3p
echo "--- tiles"
mkdir tiles tiles/a
cat >tiles/a/tiles.csv <<'END'
minx,miny,width,height,prob_normal,prob_tumor
160,160,100,60,0.1,0.9
160,160,40,40,0.4,0.6
300,200,120,20,0.3,0.7
200,100,100,200,0.2,0.8
600,200,40,40,0.9,0.1
END
cp tiles/a/tiles.csv tiles/a.csv
microtome evaluate confusion tiles/a/tiles.csv --truth list.csv --csv -q | sed -n 1,3p
microtome evaluate confusion tiles/a.csv --truth list.csv --csv -q --tile majority | sed -n 1,3p
microtome evaluate confusion tiles/a.csv --truth list.csv -q | tail -n 1
mkdir masks && python3 -c "import struct, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
open('masks/a.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 10, 10, 8, 0, 0, 0, 0)) +
                                chunk(b'IDAT', zlib.compress((b'\\0' + b'\\xff' * 10) * 10)) + chunk(b'IEND', b''))"
cat >tiles/a.csv.beyond <<'END'
minx,miny,width,height,prob_normal,prob_tumor
0,0,32,32,0.1,0.9
-900000,-900000,32,32,0.9,0.1
-40,100,32,32,0.9,0.1
1e300,0,32,32,0.9,0.1
END
mkdir beyond && mv tiles/a.csv.beyond beyond/a.csv
for rule in centre majority; do microtome evaluate confusion beyond/a.csv --truth masks --tile $rule -q --csv | sed -n 1,3p; done
echo "--- bad input"
microtome evaluate confusion maps -q
microtome evaluate confusion maps --truth truth -q
microtome evaluate confusion maps --truth truth --class-map 'Stroma=fat,Lymph=lymphoid,DCIS=tumor,Fold=exclusion' -q
microtome evaluate confusion maps two --truth list.csv -q --class-map Stroma=tumor --allow-missing
microtome evaluate confusion maps/b --truth truth --class-map "$map" -q --allow-missing
microtome evaluate confusion maps --truth list.csv --class-map "x=lymphoid,y=stroma,z=tumor" -q
microtome evaluate confusion maps --truth truth --class-map "$map" --classes a,b
printf 'slide,annotation\nc,\n' >other.csv
microtome evaluate confusion tiles/a.csv --truth other.csv -q
microtome evaluate confusion tiles/a.csv list.csv --truth list.csv -q
sed 's/0.9$/nan/' tiles/a.csv >tiles/bad.csv
printf 'slide,annotation\nbad,a.json\n' >bad.csv
microtome evaluate confusion tiles/bad.csv --truth bad.csv -q
microtome evaluate confusion absent --truth list.csv -q
