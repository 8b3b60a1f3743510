# Progress of a run without a cluster: complete, with failures, stopped, killed, a training, no run.
microtome phantom -o c --slides 2 --size 1024 --seed 1 --quiet
printf 'not a slide' >bad.tiff
microtome tissue c/slides -o whole --quiet >/dev/null
echo "== whole"
microtome status whole
echo "== with a failure, kept ones and what is left"
microtome tissue c/slides bad.tiff -o whole --quiet >/dev/null
microtome status whole
microtome status whole --json
echo "== a run that ended without a message, after two of three slides"
mkdir killed
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
python3 - <<'P'
import json
run = json.load(open("whole/run.json"))
run["ended"], run["slides"] = None, run["slides"][:2]
json.dump(run, open("killed/run.json", "w"))
P
microtome status killed
echo "== a training"
mkdir trained
echo '{"arguments": ["microtome", "train", "a.yaml"], "seconds": 75, "state": "stopped", "epochs": 3, "epochs_planned": 10}' >trained/run.json
microtome status trained
echo "== no run"
mkdir empty && microtome status empty
microtome status absent
echo '{"arguments": 5}' >empty/run.json && microtome status empty
echo '{' >empty/run.json && microtome status empty
