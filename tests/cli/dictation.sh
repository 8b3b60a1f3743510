# The study of dictated diagnoses (bench/study_dictation.py), as small as it gets: espeak-ng speaks two diagnoses, and
# its recordings are learnt from and scored. That they are learnt well takes minutes: docs/audio.md.
command -v espeak-ng >/dev/null || { echo "espeak-ng is not installed" >&2; exit 77; }
here=$(dirname "$0")
python3 - "$here/../../bench" <<'P' || exit
import sys
sys.path.insert(0, sys.argv[1])
import study_dictation
study_dictation.corpus(".", 1, diagnoses=["melanoma", "benign"], voices={"train": ["m1", "f2"], "val": ["m2"], "test": ["f3"]})
P
wc -l train.csv val.csv test.csv | awk '{ print $2, $1 }'
microtome train "$here/../../examples/dictation.yaml" -o run -q --threads 1 --set data.train=train.csv --set data.val=val.csv \
    --set train.epochs=1 --set train.batch=4 --set data.max_seconds=5 >/dev/null || exit
microtome predict test.csv --model run -o scores -q --threads 1 | cut -d, -f 1
python3 - "$here/../../bench" <<'P' | sed 's/:.* of/: of/; s/, [0-9.]*$//'
import sys
sys.path.insert(0, sys.argv[1])
import study_dictation
study_dictation.report(".")
P
