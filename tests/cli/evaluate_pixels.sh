# Heatmaps against annotations, cell by cell; slides with only one of the two.
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
make() { python3 "$SOURCE/tests/cli/make_heatmap.py" "$@"; }
make maps/a 60 40 normal,tumour 10,10,10,10,0.9 40,20,5,5,0.8
make maps/b 60 40 normal,tumour
mkdir truth
# cells 10..19 x 10..14, half of the first region that is called
echo '{"positive":[{"name":"t","vertices":[[160,160],[320,160],[320,240],[160,240]]}],"negative":[]}' >truth/a.json
microtome evaluate pixels maps --truth truth -q
microtome evaluate pixels maps --truth truth -q --csv --threshold 0.85
microtome evaluate pixels maps --truth truth -q --json
printf 'slide,annotation\na,truth/a.json\nb,\n' >list.csv
microtome evaluate pixels maps --truth list.csv -q --csv | tail -n 1

echo "--- bad input"
cp truth/a.json truth/z.json
microtome evaluate pixels maps --truth truth -q
microtome evaluate pixels maps --truth truth -q --allow-missing --csv | tail -n 1
head -n 2 list.csv >short.csv
microtome evaluate pixels maps --truth short.csv -q
microtome evaluate pixels maps/b --truth truth -q --allow-missing
microtome evaluate pixels maps
make other/a 60 40 x,y,z
microtome evaluate pixels other --truth truth -q --allow-missing
microtome evaluate pixels absent --truth truth
echo '{' >truth/a.json
microtome evaluate pixels maps --truth truth -q
