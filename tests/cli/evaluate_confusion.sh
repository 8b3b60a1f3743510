# Counts of true and predicted classes: from scores, from predicted classes, from a threshold.
cat >three.csv <<'END'
sample,label,prob_stroma,prob_lymphoid,prob_tumor
a,0,0.7,0.2,0.1
b,stroma,0.4,0.4,0.2
c,0,0.3,0.5,0.2
d,1,0.2,0.6,0.2
e,lymphoid,0.4,0.5,0.1
f,1,0.1,0.3,0.6
g,tumor,0.1,0.2,0.7
h,2,0.6,0.1,0.3
END
microtome evaluate confusion three.csv --slide sample --plot matrix
microtome evaluate confusion three.csv --slide sample --weights quadratic | tail -n 1
microtome evaluate confusion three.csv --slide sample --csv --weights linear
microtome evaluate confusion three.csv --slide sample --json
cat matrix_counts.csv && head -c 4 matrix.svg && echo && od -An -tx1 -N4 matrix.png
microtome evaluate confusion three.csv --slide sample --csv --classes tumor,stroma,lymphoid | sed 1d
echo "--- predicted classes"
printf 'slide,label,predicted\na,micro,macro\nb,negative,negative\nc,itc,negative\nd,macro,macro\n' >called.csv
microtome evaluate confusion called.csv
microtome evaluate confusion called.csv --classes negative,itc,micro,macro --weights quadratic | tail -n 1
sed 's/predicted/mine/' called.csv >mine.csv
microtome evaluate confusion mine.csv --predicted mine --csv | sed -n 1p
printf 'slide,truth\na,micro\nb,negative\nc,itc\ne,macro\n' >truth.csv
microtome evaluate confusion called.csv --truth truth.csv --label truth --allow-missing --csv | tail -n 1
echo "--- a single score"
printf 'slide,score,label\na,0.5,1\nb,0.4,0\nc,0.7,tumor\nd,0.1,1\ne,0.9,0\n' >score.csv
microtome evaluate confusion score.csv
microtome evaluate confusion score.csv --threshold 0.05 --csv | tail -n 1
microtome evaluate confusion score.csv --classes benign,tumor --csv | sed -n 1p
sed 's/,1$/,yes/;s/,0$/,no/;s/tumor/yes/' score.csv >words.csv
microtome evaluate confusion words.csv --positive yes --csv | sed -n 1,3p
echo "--- bad input"
microtome evaluate confusion called.csv --truth truth.csv --label truth
microtome evaluate confusion called.csv --classes negative,itc,micro
microtome evaluate confusion called.csv --classes negative
microtome evaluate confusion called.csv --predicted theirs
microtome evaluate confusion score.csv --classes a,b,c
microtome evaluate confusion score.csv --score scores
microtome evaluate confusion words.csv
sed 's/^c,0/c,5/' three.csv >bad.csv && microtome evaluate confusion bad.csv --slide sample
sed 's/0\.7/nan/' three.csv >bad.csv && microtome evaluate confusion bad.csv --slide sample
microtome evaluate confusion three.csv --slide sample --classes stroma,lymphoid,necrosis
microtome evaluate confusion three.csv
microtome evaluate confusion three.csv called.csv
microtome evaluate confusion absent.csv
microtome evaluate confusion three.csv --slide sample --patient
microtome evaluate confusion three.csv --slide sample --points points.csv
microtome evaluate roc three.csv --slide sample --weights linear
