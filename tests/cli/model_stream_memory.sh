# The memory of a streamed network: 0 to 10 % less than predicted, and never more than the limit.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to measure under the sanitizers" >&2; exit 77; }
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),*$/\1/p" bench.json; }
bench() {
    microtome model bench -q --memory stream --repeats 1 "$@" >bench.json
    awk -v p="$(value predicted_mb)" -v m="$(value peak_rss_mb)" -v most="${most:-100000}" 'BEGIN {
        print (p >= m && p <= 1.1 * m) ? "as predicted" : p " MB predicted, " m " MB measured"
        if (m > most) print "more than " most " MB" }'
}
bench --network resnet18 --train --size 600 --tile-px 256 --threads 2
bench --network resnet18 --size 600 --tile-px 256 --threads 1
bench --network scan_tiny --train --size 2048 --threads 1
most=70 bench --network scan_tiny --train --size 2048 --threads 1 --memory-mb 70 --spill .
most=320 bench --network resnet18 --train --size 700 --threads 1 --memory-mb 320 --spill .
