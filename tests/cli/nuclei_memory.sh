# The memory is that of a tile for each thread, whatever the size of the slide.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to measure under the sanitizers" >&2; exit 77; }
/usr/bin/python3 "$(dirname "$0")/support/wide_slide.py" wide.tiff 65536 2>/dev/null || { echo "no numpy or Pillow" >&2; exit 77; }
microtome phantom -q -o c --slides 1 --size 4096 --seed 1 || exit
peak() { # MB...
    /usr/bin/python3 -c 'import resource, subprocess, sys
run = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL)
mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(run.returncode, "within its memory" if mb <= int(sys.argv[1]) else f"{mb} MB")' "$@"
}
# (256 + 2 x 116)^2 px of 40 bytes for each of two threads: 19 MB, and the program and its libraries
peak 90 microtome nuclei -q c/slides -o a --mpp 0.5 --tile 256 --threads 2 --no-label-images
peak 150 microtome nuclei -q wide.tiff -o b --mpp 0.5 --tile 256 --threads 2
