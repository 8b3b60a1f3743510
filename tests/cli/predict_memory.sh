# --memory bounds all that predict takes, libraries and models included: for a slide of 65,536 x 65,536
# px, and for a large network; what is too little is refused with what would do, and that does.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to measure under the sanitizers" >&2; exit 77; }
support=$(dirname "$0")/support
/usr/bin/python3 "$support/wide_slide.py" wide.tiff 65536 2>/dev/null || { echo "no numpy or Pillow" >&2; exit 77; }
# exit code, then what it took at most in MB, and its error
peak() {
    /usr/bin/python3 -c 'import resource, subprocess, sys
run = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
print(run.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, run.stderr.strip())' "$@"
}
bounded() { # NAME MB OPTIONS...
    read -r code mb text < <(peak microtome predict -q -o "$1" --memory "$2" --init-seed 1 --threads 2 --export none "${@:3}")
    least=$(sed -n 's/.*is not enough.*pass at least \([0-9]*\)$/\1/p' <<<"$text")
    if [ "$code" = 0 ] && [ "$mb" -gt "$2" ]; then
        echo "$1: $mb MB, with --memory $2"
    elif [ "$code" = 2 ] && [ -n "$least" ]; then
        bounded "$1" "$least" "${@:3}"
    else
        echo "$1: exit $code, within its memory"
    fi
}
/usr/bin/python3 -c 'from PIL import Image
Image.effect_mandelbrot((6000, 5500), (-3, -2.5, 2, 2.5), 20).convert("RGB").save("field.jpg")' || exit
/usr/bin/python3 -c 'from PIL import Image
Image.open("field.jpg").crop((0, 0, 2600, 2200)).save("part.png")' || exit
bounded field 200 field.jpg --network scan_base --stride 512 --method none
bounded wide 400 wide.tiff --network scan_tiny --stride 64
bounded large 300 wide.tiff --network resnet50 --mode window --stride 128
bounded streamed 450 part.png --network googlenet --mode dense --stride 32 --method none --check-windows 4
grep -o "stream=auto tile=[0-9]*" streamed/part/heatmap.json | sed "s/[0-9]*$//"
