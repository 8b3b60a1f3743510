# pN stages of patients and types of slides against the truth, in CAMELYON17's form and in ours.
cat >truth.csv <<'END'
patient,stage
patient_000.zip,pN0
patient_000_node_0.tif,negative
patient_000_node_1.tif,negative
patient_001.zip,pN0(i+)
patient_001_node_0.tif,itc
patient_001_node_1.tif,negative
patient_002.zip,pN1mi
patient_002_node_0.tif,micro
patient_002_node_1.tif,itc
patient_003.zip,pN1
patient_003_node_0.tif,macro
patient_003_node_1.tif,negative
patient_004.zip,pN2
patient_004_node_0.tif,macro
patient_004_node_1.tif,macro
END
sed 's/pN0(i+)/pN0/;s/node_0.tif,itc/node_0.tif,negative/;s/pN2/pN1/;s/003_node_0.tif,macro/003_node_0.tif,micro/' truth.csv >called.csv
microtome evaluate stage called.csv --truth truth.csv --bootstrap 200 --plot stages
microtome evaluate stage called.csv --truth truth.csv --bootstrap 0 --json | grep -v '"class"'
microtome evaluate stage called.csv --truth truth.csv --csv | sed -n '1,6p;/^n,/,/^$/p'
ls stages* && cat stages_slides_counts.csv
echo "--- patients alone, slides alone"
printf 'patient,stage,nodes\npatient_000,PN0,2\npatient_001,pN0(i+),2\npatient_002,pN1mi,2\npatient_003,pN1,2\npatient_004,pN1,2\n' >patients.csv
microtome evaluate stage patients.csv --truth truth.csv --bootstrap 0 | tail -n 1
printf 'slide,patient,type\npatient_000_node_0,a,negative\npatient_001_node_0.tif,a,ITC\n' >slides.csv
microtome evaluate stage slides.csv --truth truth.csv --allow-missing --bootstrap 0 | tail -n 1
echo "--- bad input"
microtome evaluate stage slides.csv --truth truth.csv
microtome evaluate stage slides.csv --truth patients.csv
grep -v patient_003.zip called.csv >less.csv
microtome evaluate stage less.csv --truth truth.csv
microtome evaluate stage truth.csv --truth less.csv
microtome evaluate stage called.csv
microtome evaluate stage called.csv called.csv --truth truth.csv
sed 's/pN2/pN3/' truth.csv >bad.csv && microtome evaluate stage called.csv --truth bad.csv
sed 's/patient_001.zip/patient_000.zip/' truth.csv >bad.csv && microtome evaluate stage bad.csv --truth truth.csv
echo 'patient,stage' >bad.csv && microtome evaluate stage bad.csv --truth truth.csv
printf 'patient,stage\nz.zip,pN0\n' >bad.csv && microtome evaluate stage bad.csv --truth truth.csv --allow-missing
printf 'name,stage\na,pN0\n' >bad.csv && microtome evaluate stage bad.csv --truth truth.csv
microtome evaluate stage called.csv --truth truth.csv --weights linear
microtome evaluate stage absent.csv --truth truth.csv
