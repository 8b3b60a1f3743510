# Areas, tests and plots; messages for every kind of bad input name the line and a remedy.
cat >scores.csv <<'END'
slide,score,other,label
a.tif,0.9,0.4,1
b.tif,0.8,0.9,1
c.tif,0.7,0.2,0
d.tif,0.4,0.6,1
e.tif,0.3,0.1,0
f.tif,0.2,0.3,0
END
microtome evaluate roc scores.csv --plot roc --points points.csv
microtome evaluate roc scores.csv --score score --score other --json --bootstrap 0
microtome evaluate roc scores.csv --csv --bootstrap 100 --threads 1 >one
microtome evaluate roc scores.csv --csv --bootstrap 100 --threads 3 | cmp - one && cat one
cat points.csv
head -c 4 roc.svg && echo && od -An -tx1 -N4 roc.png

echo "--- one patient"
sed '1s/$/,patient/; 2,$s/$/,p/' scores.csv >patient.csv
microtome evaluate roc patient.csv --csv -q --bootstrap 100 | sed -n 1,2p | cut -d, -f1-4

echo "--- truth in a separate table"
cut -d, -f1,2 scores.csv >only.csv
printf 'slide,label\na,Tumor\nb,Tumor\nc,Normal\nd,Tumor\ne,Normal\nf,Normal\n' >truth.csv
microtome evaluate roc only.csv --truth truth.csv --positive Tumor --bootstrap 0
microtome evaluate roc only.csv --truth truth.csv --bootstrap 0 --csv | cut -d, -f1-4
printf 'slide,label\na,1\nb,1\nc,0\nz,0\n' >gone.csv
microtome evaluate roc only.csv --truth gone.csv
microtome evaluate roc only.csv --truth gone.csv --allow-missing --bootstrap 0
head -n 4 only.csv >few.csv
microtome evaluate roc few.csv --truth gone.csv

echo "--- bad input"
bad() { printf "$1" >bad.csv; microtome evaluate roc bad.csv; }
bad 'slide,score,label\na,0.5,1\nb,x,0\n'
bad 'slide,score,label\na,0.5,1\nb,nan,0\n'
bad 'slide,score,label\na,0.5,1\nb,,0\n'
bad 'slide,score,label\na,0.5,cancer\nb,1,0\n'
bad 'slide,score,label\na,0.5,2\nb,1,0\n'
bad 'slide,score,label\na,0.5,1\nb,0.7,1\n'
bad 'slide,score,label\na,0.5,1\nb,0.5,0\n'
bad 'slide,score,label\na,0.5,1\na,0.7,0\n'
bad 'slide,score,label\na,0.5,1,7\n'
bad 'slide,points,label\na,0.5,1\n'
bad 'name,score,label\na,0.5,1\n'
bad 'slide,score\na,0.5\n'
bad 'slide,score,label\n'
bad 'slide,score,label\n"a,0.5,1\n'
microtome evaluate roc absent.csv
microtome evaluate roc
microtome evaluate rock scores.csv
microtome evaluate roc scores.csv --json --csv
microtome evaluate roc scores.csv --plot absent/roc

echo "--- patients, groups, calibration"
cat >patients.csv <<'END'
slide,score,label,patient,center
a1,0.95,1,anna,0
a2,0.15,0,anna,0
b1,0.70,1,bert,0
b2,0.60,1,bert,0
c1,0.40,0,cleo,1
c2,0.80,0,cleo,1
d1,0.85,1,dora,1
e1,0.10,0,emil,
f1,0.20,0,fred,
END
microtome evaluate roc patients.csv --bootstrap 200 --by center --calibration 4 --plot all -q
microtome evaluate roc patients.csv --bootstrap 200 --patient --csv
microtome evaluate roc patients.csv --bootstrap 0 --patient --patient-score mean --by center --json
microtome evaluate roc patients.csv --bootstrap 200 --by center --calibration 2 --csv
ls all*
cat all_points.csv all_pr_points.csv all_calibration_points.csv
echo "--- the columns may be in the truth"
cut -d, -f1,2 patients.csv >plain.csv
microtome evaluate roc plain.csv --truth patients.csv --by center --bootstrap 0 -q | tail -n 4
microtome evaluate roc plain.csv --truth patients.csv --patient-column center --bootstrap 100 --csv -q | cut -d, -f1-3,16
echo "--- not probabilities"
sed 's/0.95/9.5/' patients.csv >logits.csv
microtome evaluate roc logits.csv --bootstrap 0 --calibration 3 --plot logits && ls logits*
echo "--- missing columns, options that do not apply"
microtome evaluate roc patients.csv --by hospital
microtome evaluate roc patients.csv --patient-column person
microtome evaluate roc plain.csv --truth truth.csv --patient --allow-missing
microtome evaluate roc patients.csv --patient --patient-column center
sed 's/^a2\(.*\),0$/a2\1,1/' patients.csv >moved.csv
microtome evaluate roc moved.csv --patient --by center
microtome evaluate froc lesions --truth x --by center
microtome evaluate pixels heatmaps --truth x --plot p
