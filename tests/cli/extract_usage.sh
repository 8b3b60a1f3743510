# Wrong options and combinations: each one named, nothing done.
try() {
    microtome extract "$@"
    echo "exit $?" >&2
}
try
try slide.svs --dense
try slide.svs -o out
try slide.svs -o out --dense --random 5
try slide.svs -o out --random 0
try slide.svs -o out --random 5 --margin 32
try slide.svs -o out --random 5 --stride 32
try slide.svs -o out --dense --mpp 0.5 --level 1
try slide.svs -o out --dense --level 0 --mpp 0.5
try slide.svs -o out --dense --template t.png
try slide.svs -o out --dense --group 10 --group-memory 100
try slide.svs -o out --dense --group-memory 0.1
try slide.svs -o out --dense --label-rule none --annotations dir
try slide.svs -o out --dense --layout blokcs
try slide.svs -o out --dense --patch -3
try slide.svs -o out --dense --tissue-fraction 2
try slide.svs -o out --densse
try gone.svs -o out --dense
printf 'file\na.svs\n' >list.csv
try list.csv -o out --dense
ls
