# Features -> a forest -> scores -> an ROC curve; grids; bad input is named.
awk 'BEGIN {
    print "slide,label,area,axis,note"
    for (i = 0; i < 60; i++) {
        tumour = i % 3 == 0
        printf "s%02d.tif,%d,%d,%.3f,x\n", i, tumour, (i * 37) % 50 + 30 * tumour, (i * 17 % 23) / 7
    }
}' >all.csv
head -n 41 all.csv >train.csv
(head -n 1 all.csv; tail -n 20 all.csv) >test.csv
microtome classify train train.csv -o forest.json
microtome classify train train.csv -o forest.json --ignore note --trees 50 --threads 1
microtome classify train train.csv -o again.json --ignore note --trees 50 --threads 3 >again
cmp forest.json again.json && microtome classify apply test.csv -m forest.json -o scores.csv
head -n 3 scores.csv
microtome classify apply test.csv -m forest.json --json | sed -n 1,4p
microtome evaluate roc scores.csv --truth test.csv --bootstrap 0
microtome classify train train.csv -o grid.json --ignore note --trees 20 --depth 1,0 --min-leaf 1,5 --folds 3 -q
microtome classify train train.csv -o grid.json --ignore note --trees 20 --depth 1,3 --folds 3 --json -q
cut -d, -f1,3- train.csv >bare.csv && cut -d, -f1,2 all.csv >labels.csv
microtome classify train bare.csv --truth labels.csv -o bare.json --ignore note --trees 50 >bare
cmp forest.json bare.json && echo the same with labels from another table

echo "--- bad input"
microtome classify train bare.csv --ignore note -o x.json
head -n 5 labels.csv >few.csv
microtome classify train bare.csv --truth few.csv --ignore note -o x.json
microtome classify train train.csv train.csv --ignore note -o x.json
sed 's/,area,/,size,/' train.csv >renamed.csv
microtome classify apply renamed.csv -m forest.json
sed '3s/,x$/,/;3s/\(.*\),[0-9.]*,$/\1,nan,/' train.csv >nan.csv
microtome classify train nan.csv --ignore note -o x.json
awk -F, 'NR == 1 || $2 == 0' train.csv >one.csv
microtome classify train one.csv --ignore note -o x.json
microtome classify train train.csv --ignore note -o x.json --split-features 3
microtome classify train train.csv --ignore note -o x.json --trees 10,x
microtome classify train train.csv --ignore note -o x.json --depth 1,2 --folds 30 -q
microtome classify train train.csv --ignore note
microtome classify train train.csv --ignore note -o absent/x.json
microtome classify apply test.csv
microtome classify apply test.csv -m train.csv
echo '{"format": "microtome forest", "version": 2}' >two.json
microtome classify apply test.csv -m two.json
microtome classify aply test.csv
microtome classify train
[ ! -e x.json ] && echo nothing half-written
