# The truth of nuclei, added to slides that exist already; and pen marks on tumour alone.
microtome phantom -o cohort --slides 2 --size 1024 --seed 3 -q
cp -r cohort/slides before
microtome phantom -o cohort --slides 2 --size 1024 --seed 3 --nuclei -q
diff -r cohort/slides before && echo "the slides are the same"
for slide in cohort/nuclei/*; do
    echo "$slide"
    grep -o '"name": "[a-z]*"' "$slide" | sort | uniq -c
done
microtome phantom -o cohort --slides 2 --size 1024 --seed 3 --pen tumor
echo "exit $?"
microtome phantom -o pen --slides 2 --size 1024 --seed 3 --pen tumor --nuclei -q
diff -r cohort/nuclei pen/nuclei && echo "ink does not change the truth"
microtome phantom -o other --slides 2 --pen tumor --artefacts
echo "exit $?"
