# FROC by CAMELYON16's rules from annotations, masks and slide lists; bad input is named.
square() { # name x y side: an ASAP annotation
    x1=$(($2 + $4)) y1=$(($3 + $4))
    echo "<ASAP_Annotations><Annotations><Annotation Name=\"a\" PartOfGroup=\"Tumor\"
Type=\"Polygon\"><Coordinates><Coordinate Order=\"0\" X=\"$2\" Y=\"$3\"/>
<Coordinate Order=\"1\" X=\"$x1\" Y=\"$3\"/><Coordinate Order=\"2\" X=\"$x1\" Y=\"$y1\"/>
<Coordinate Order=\"3\" X=\"$2\" Y=\"$y1\"/></Coordinates></Annotation></Annotations>
</ASAP_Annotations>" >"$1"
}
mkdir truth ours theirs
square truth/a.xml 3200 3200 3200
square truth/b.xml 6400 640 1600
square truth/c.xml 6400 640 64
printf 'score,x,y\n0.9,4000,4000\n0.7,4100,4000\n0.8,100,100\n' >ours/a.csv
printf '0.6,7000,1000\n0.3,1,1\n' >ours/b.csv
printf 'score,x,y\n0.95,6410,650\n' >ours/c.csv # on isolated cells: ignored
: >ours/d.csv
printf 'score,x,y\n0.5,9999999,-4\n' >ours/e.csv # beyond every mask: wrong
cp ours/*.csv theirs/ && printf '0.2,7000,1000\n0.1,7000,1000\n' >theirs/b.csv
microtome evaluate froc ours theirs/ --truth truth --plot froc --points points.csv -q
microtome evaluate froc ours --truth truth --json -q
microtome evaluate froc ours --truth truth --csv -q
grep ours points.csv
cmp points.csv froc_points.csv && echo the points are beside the plot too
head -c 4 froc.svg && echo && od -An -tx1 -N4 froc.png

echo "--- equal scores: the challenge's program distinguishes 0.6 of a lesion from 0.6 of a false positive"
cp -r ours tied && printf 'score,x,y\n0.6,100,100\n' >tied/d.csv && printf '0.6,1,1\n' >tied/e.csv
for ties in equal official; do
    microtome evaluate froc tied --truth truth --ties $ties --csv -q
done
microtome evaluate froc tied --truth truth --ties offical

echo "--- a slide list names every slide"
printf 'slide,annotation\na.tif,truth/a.xml\nb.tif,truth/b.xml\nc.tif,truth/c.xml\nd.tif,\ne.tif,\n' >list.csv
microtome evaluate froc ours --truth list.csv --csv -q | cut -d, -f1-8
head -n 5 list.csv >short.csv
microtome evaluate froc ours --truth short.csv -q
microtome evaluate froc ours --truth short.csv -q --allow-missing --csv | cut -d, -f1-8

echo "--- um/px of each slide: c is 64 px, too small at 0.25 um/px, not at 8"
printf 'slide,annotation,mpp\na.tif,truth/a.xml,0.25\nb.tif,truth/b.xml,0.25\nc.tif,truth/c.xml,8\nd.tif,,\ne.tif,,1\n' >mpp.csv
microtome evaluate froc ours --truth mpp.csv --csv -q | cut -d, -f1-8
microtome evaluate froc ours --truth mpp.csv --mpp 0.25 --csv -q | cut -d, -f1-8
microtome evaluate froc ours --truth mpp.csv --mpp 0.25 --isolated 0 --csv -q | cut -d, -f1-8
sed 's/0.25/quarter/' mpp.csv >bad_mpp.csv
microtome evaluate froc ours --truth bad_mpp.csv --csv -q

echo "--- bad input"
rm ours/b.csv
microtome evaluate froc ours --truth truth -q
microtome evaluate froc ours --truth truth -q --allow-missing --csv | cut -d, -f1-8
mkdir none small empty && square small/c.xml 6400 640 64
microtome evaluate froc ours --truth small -q
microtome evaluate froc ours --truth none -q
microtome evaluate froc empty --truth truth -q
mkdir other && : >other/z.csv
microtome evaluate froc other --truth truth -q --allow-missing
printf 'score,x,y\n0.9,a,4000\n' >ours/a.csv
microtome evaluate froc ours --truth truth -q --allow-missing
printf 'score,x\n0.9,4000\n' >ours/a.csv
microtome evaluate froc ours --truth truth -q --allow-missing
printf 'score,x,y\n0.9,4000,4000\n' >ours/a.csv
cp truth/a.xml truth/a.json
microtome evaluate froc ours --truth truth -q --allow-missing
rm truth/a.json && echo '<ASAP_Annotations><Annot' >truth/a.xml
microtome evaluate froc ours --truth truth -q --allow-missing
microtome evaluate froc ours
microtome evaluate froc absent --truth truth
microtome evaluate froc ours --truth absent
