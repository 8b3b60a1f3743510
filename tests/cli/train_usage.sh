# Wrong usage and wrong configs: named, nothing done.
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
microtome train --template >template.yaml && try template.yaml -o out
ls
