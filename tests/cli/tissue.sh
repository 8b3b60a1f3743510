# Masks of a small cohort: a bad slide is reported and skipped, complete ones are kept.
set -e
microtome phantom -o cohort --slides 2 --size 2048 --seed 3 --quiet
echo "not a slide" >cohort/slides/broken.svs
microtome tissue cohort/slides -o masks --threads 2 && echo "should have failed"
ls masks
grep -c '"state": "failed"' masks/run.json
cp masks/patient_000_node_0_mask.png before.png
rm cohort/slides/broken.svs masks/patient_000_node_0_tissue.png
microtome tissue cohort/slides -o masks --quiet --threads 1
grep -o '"state": "[a-z]*"' masks/run.json
cmp before.png masks/patient_000_node_0_mask.png
microtome tissue cohort/slides -o masks --quiet --method ncrf || echo "other options: $?"
cmp before.png masks/patient_000_node_0_mask.png
microtome info masks/slides.csv | grep -c vendor
for method in process ncrf; do
    microtome tissue cohort/slides -o masks-$method --method $method --json --quiet
done
