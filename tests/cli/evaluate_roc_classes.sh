# One score per class: a curve for each class against the others, and the means of their areas.
cat >three.csv <<'END'
slide,patient,label,center,prob_stroma,prob_lymphoid,prob_tumor
a1,a,0,x,0.7,0.2,0.1
a2,a,stroma,x,0.5,0.3,0.2
b1,b,Stroma,y,0.3,0.5,0.2
b2,b,0,y,0.8,0.1,0.1
c1,c,1,x,0.2,0.6,0.2
c2,c,lymphoid,x,0.4,0.5,0.1
d1,d,1,y,0.1,0.3,0.6
d2,d,1,y,0.3,0.6,0.1
e1,e,tumor,x,0.1,0.2,0.7
e2,e,2,y,0.2,0.2,0.6
f1,f,Tumour,x,0.6,0.1,0.3
f2,f,2,y,0.1,0.1,0.8
END
microtome evaluate roc three.csv --bootstrap 200 -q --plot roc
microtome evaluate roc three.csv --bootstrap 0 --json | grep -A6 means
microtome evaluate roc three.csv --bootstrap 100 --csv -q --threads 1 >one
microtome evaluate roc three.csv --bootstrap 100 --csv -q --threads 3 | cmp - one && tail -n 2 one
cut -d, -f1,3 roc_points.csv | head -n 3; ls roc*
microtome evaluate roc three.csv --bootstrap 0 -q --by center --csv | cut -d, -f1-6 | sed -n '/,by,/,/^$/p'

echo "--- two tables, labels elsewhere"
cut -d, -f1,5-7 three.csv >one.csv && sed 's/0\.7/0.5/;s/0\.6/0.4/' one.csv >two.csv
cut -d, -f1-3 three.csv >truth.csv
microtome evaluate roc one.csv two.csv --truth truth.csv --bootstrap 0 -q --csv | cut -d, -f1-4

echo "--- two classes: one curve, of the second"
printf 'slide,label,prob_normal,prob_tumor\na,1,0.1,0.9\nb,normal,0.6,0.4\nc,0,0.8,0.2\nd,tumor,0.7,0.3\n' >pair.csv
microtome evaluate roc pair.csv --bootstrap 0
microtome evaluate roc pair.csv --score prob_tumor --bootstrap 0 | tail -n 1

echo "--- bad input"
head -n 5 three.csv >same.csv
microtome evaluate roc same.csv
head -n 9 three.csv >absent.csv
microtome evaluate roc absent.csv -q --bootstrap 0 | sed 1d
sed 's/^c1,c,1/c1,c,3/' three.csv >bad.csv
microtome evaluate roc bad.csv
sed 's/^c1,c,1/c1,c,/' three.csv >bad.csv
microtome evaluate roc bad.csv
sed 's/^c1.*/c1,c,1,x,nan,0.6,0.2/' three.csv >bad.csv
microtome evaluate roc bad.csv
sed '1s/prob_stroma/prob_tumor/' three.csv >bad.csv
microtome evaluate roc bad.csv
microtome evaluate roc three.csv --patient
microtome evaluate roc three.csv --positive tumor
cut -d, -f1,2,4- three.csv >bad.csv
microtome evaluate roc bad.csv
