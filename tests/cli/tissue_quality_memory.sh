# tissue --quality takes little more memory than without, on a slide of 65,536 x 65,536 px.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to measure under the sanitizers" >&2; exit 77; }
support=$(dirname "$0")/support
/usr/bin/python3 "$support/wide_slide.py" wide.tiff 65536 2>/dev/null || { echo "no numpy or Pillow" >&2; exit 77; }
/usr/bin/python3 - <<'END'
import resource
import subprocess

subprocess.run(["microtome", "tissue", "wide.tiff", "-o", "masks", "--quality", "--quiet", "--threads", "2"], check=True)
mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print("within 150 MB" if mb <= 150 else "%d MB" % mb)
END
