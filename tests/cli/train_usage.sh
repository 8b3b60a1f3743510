# Wrong usage and invalid configs: named, nothing done.
try() {
    microtome train "$@"
    echo "exit $?" >&2
}
try
try run.yaml
try run.yaml -o out
printf 'train:\n  epoch: 3\n' >run.yaml
try run.yaml -o out
printf 'train: {batch: many}\n' >run.yaml
try run.yaml -o out
printf 'data: {}\n' >run.yaml
try run.yaml -o out
try run.yaml -o out --set train.batch
try run.yaml -o out --set data.balance=weight
try run.yaml -o out --set data.train=[gone.h5]
: >empty.h5
try run.yaml -o out --set data.train=empty.h5
microtome phantom -q -o cohort --slides 1 --size 1024 --seed 1 || exit
mkdir images && microtome info cohort/slides/*.tiff --thumbnail images/a_class0.png >/dev/null
tar -cf images.tar -C images a_class0.png
try run.yaml -o out --set data.train=images
try run.yaml -o out --set data.train=images.tar
mv images/a_class0.png images/a_idx5_x1_y1_class0.png
cp images/a_idx5_x1_y1_class0.png images/b_idx5_x1_y1_class1.png
cp images/a_idx5_x1_y1_class0.png images/odd.png
try run.yaml -o out --set data.train=images
rm images/odd.png
try run.yaml -o out --set data.train=images --set data.spacing_um_px=1 --set data.val_fraction=0.5 --set train.batch=1 --set network.name=scan_tiny --set network.input_px=100
microtome train --template >template.yaml && try template.yaml -o out
ls
