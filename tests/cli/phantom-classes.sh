# Three annotated tissue classes: annotations on every slide, and a class map.
microtome phantom -o plain --slides 2 --size 1024 --seed 5 -q
microtome phantom -o three --slides 2 --size 1024 --seed 5 -q --classes stroma,lymphoid,tumor
cat three/slides.csv three/classes.yaml
(cd three && find . -type f | sort)
grep -o '"classification":.*"name": "[a-z]*"' three/annotations/*.geojson | sed 's/.*"name": //' | sort | uniq -c
echo "--- a cohort has one kind of annotation"
microtome phantom -o plain --slides 2 --size 1024 --seed 5 --classes tumor,fat
echo "exit $?"
microtome phantom -o three --slides 2 --size 1024 --seed 5 --classes lymphoid,stroma,tumor
echo "exit $?"
echo "--- wrong lists"
for classes in tumor tumor,tumor tumor,gland tumor, '' ,tumor; do
    microtome phantom -o none --slides 1 --size 1024 --classes "$classes"
done
ls
