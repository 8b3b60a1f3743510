# Patches of a small cohort: dense and random, kept when complete, the same bytes on any threads.
microtome phantom -q -o cohort --slides 2 --size 2048 --seed 1 || exit
microtome extract -q cohort/slides.csv -o dense --dense --preview | sed 's/  */ /g'
ls dense
cat dense/lookup.csv
cut -d, -f2,3,5-8 dense/slides.csv
microtome extract -q cohort/slides.csv -o dense --dense | awk 'NR > 1 { print $NF }'
echo "--- other options are noticed; nothing is mixed"
microtome extract -q cohort/slides.csv -o dense --dense --margin 0
echo "exit $?"
microtome extract -q cohort/slides.csv -o dense --dense --margin 0 --overwrite | awk 'NR > 1 { print $NF }'
echo "--- so is another slide list"
for column in split label mpp; do
    awk -F, -v column=$column -v OFS=, '{ print $1, NR == 1 ? column : column == "mpp" ? 0.3 : "other" }' cohort/slides.csv >cohort/$column.csv
    microtome extract -q cohort/$column.csv -o dense --dense --margin 0
    echo "exit $?"
done
cut -d, -f1,4 cohort/slides.csv >cohort/few.csv # slide and annotation: empty cells say nothing
microtome extract -q cohort/few.csv -o dense --dense --margin 0 | awk 'NR > 1 { print $NF }'
echo "--- a link that waits where a file is written is not followed"
first=$(ls dense/*.h5 | head -n 1)
rm "$first" && echo mine >victim && ln -s ../victim "$first.part"
microtome extract -q cohort/slides.csv -o dense --dense --margin 0 | awk 'NR > 1 { print $NF }'
cat victim && rm dense/*.part
echo "--- threads"
for layout in blocks fda clam process; do
    for threads in 1 2 3; do
        microtome extract -q cohort/slides.csv -o $layout$threads --random 9 --patch 100 --seed 5 \
            --layout $layout --threads $threads --white 0.9 >/dev/null || exit
        cmp $layout$threads/${first##*/} ${layout}1/${first##*/}
    done
done
echo "--- groups: 100 x 100 x 3 bytes a patch"
microtome extract -q cohort/slides.csv -o grouped --random 9 --patch 100 --white 0.9 --group-memory 0.065 >/dev/null
wc -l <grouped/lookup.csv
awk -F, '$2 != last + 1 && NR > 1 { print "a gap before", $1 } { last = $3 }' grouped/lookup.csv
microtome extract -q cohort/slides.csv -o json --random 2 --patch 64 --json >out.json
/usr/bin/env python3 -m json.tool out.json >/dev/null && echo valid
