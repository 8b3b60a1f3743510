# The audit of a classifier: files, attacks and controls; others that differ by themselves; bad input. That leaks are
# found is in tests/slow/audit.sh.
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
python3 "$SOURCE/tests/cli/make_images.py" 36 0 images 1
python3 "$SOURCE/tests/cli/make_images.py" 24 0 others 2
python3 "$SOURCE/tests/cli/make_images.py" 24 20 bright 3
cat >run.yaml <<'Y'
classes: ["0", "1"]
network: { name: scan_tiny, input_px: 144 }
data: { train: images, spacing_um_px: 1, val_fraction: 0.17 }
train: { epochs: 1, batch: 4, monitor: last }
Y
microtome train run.yaml -q -o net --set privacy.hold_out=0.5 2>/dev/null >/dev/null || exit
microtome train run.yaml -q -o other --set seed=2 2>/dev/null >/dev/null || exit
echo "--- the lists of a training"
microtome synthesize audit --model net -o audit -q --json | sed -n 's/^ *"\(kind\|fair_coins\|same_patients\|name\|control\)": /\1 /p'
ls audit
sed -n 1p audit/scores.csv
[ "$(wc -l <audit/scores.csv)" = 31 ] && echo "30 patches"
grep -o '<h2>[^<]*' audit/audit.html
echo "--- references"
microtome synthesize audit --model net --members images --others others --reference other --reference net --coins -q \
    --epsilon 3 -o two | cut -c1-40 | sed '1,2d'
grep -c 'what the promised epsilon allows' two/roc.svg two/roc_log.svg
grep -c epsilon_lower two/audit.json
microtome synthesize audit --model net --members images --others others -q --samples 20 --threads 1 -o one >/dev/null
microtome synthesize audit --model net --members images --others others -q --samples 20 --threads 2 -o same >/dev/null
cmp one/audit.json same/audit.json && cmp one/audit.html same/audit.html && wc -l <one/scores.csv
echo "--- others that are brighter"
microtome synthesize audit --model net --members images --others bright -q -o shifted | sed -n 1p | sed 's/of [01]\.[0-9]*/of A/'
echo "--- bad input"
rm net/others.csv
microtome synthesize audit --model net -q -o bad
microtome synthesize audit --model other -q -o bad
microtome synthesize audit --model net --members images -q -o bad
microtome synthesize audit --model net --coins -q -o bad
microtome synthesize audit --model images -q -o bad
