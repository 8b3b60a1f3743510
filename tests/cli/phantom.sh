# A small cohort; a second run keeps what is complete, a larger one adds to it.
microtome phantom -o cohort --slides 2 --size 1024 --seed 5 --quiet
cat cohort/slides.csv
(cd cohort && find . -type f | sort)
grep -c '<Annotation ' cohort/annotations/patient_000_node_0.xml
sha256sum cohort/slides/*.tiff >before.txt
microtome phantom -o cohort --slides 3 --size 1024 --seed 5 --threads 3
sha256sum --check --quiet before.txt && echo the first two stay
tail -n 1 cohort/slides.csv | cut -d, -f1
microtome phantom -o cohort --slides 3 --size 1024 --seed 6
echo "another seed: $?"
