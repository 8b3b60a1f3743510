# Looks at the machine; wrong folders break it, missing schedulers do not.
microtome doctor >text || echo "exit $?"
head -n 1 text
grep -c '^  [a-z]* *\(OpenSlide\|small TIFF\|HDF5\|oneDNN\|processors\|memory\|disk\) ' text
tail -n 1 text
PATH=$(dirname "$(command -v microtome)"):/bin microtome doctor . --json | python3 -c '
import json, sys
found = json.load(sys.stdin)
print(sorted(found), found["works"], {f["state"] for f in found["findings"]} <= {"ok", "note"})'
microtome doctor /no/such/folder >broken
echo "no folder: $?"
grep -A 1 broken broken | head -n 2
