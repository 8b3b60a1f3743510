# What the tests of networks in stages share (parallel.stages), besides ranks.sh: `train ..` with run.yaml, whose
# messages are shown if it fails; `staged FOLDER STAGES SCHEDULE ..` on as many ranks; `memory FOLDER`.
. "$(dirname "${BASH_SOURCE[0]}")/ranks.sh"
train() { microtome train run.yaml -q --threads 1 "$@" 2>err.txt >/dev/null || { grep '^microtome' err.txt; false; }; }
staged() {
    local folder=$1 stages=$2 schedule=$3
    shift 3
    train -o "$folder" --ranks "$stages" --set parallel.stages="$stages" --set parallel.schedule="$schedule" "$@"
}
memory() { # FOLDER: sets of each rank, and inputs in micro-batches of its largest stage; predicted to a fifth
    /usr/bin/python3 - "$1" <<'P'
import json, sys
pipeline = json.load(open(sys.argv[1] + "/run.json"))["pipeline"]
for rank in pipeline["ranks"]:
    inputs = max(pipeline["stages"][stage - 1]["input_bytes"] for stage in rank["stages"])
    near = abs(rank["peak_bytes"] / rank["predicted_bytes"] - 1) < 0.2
    print("%s: rank %d: stages %s, %d set%s, inputs of %g%s" % (sys.argv[1], rank["rank"], rank["stages"], rank["sets"],
          "" if rank["sets"] == 1 else "s", rank["input_bytes"] / inputs,
          "" if near else ", NOT as predicted: %d, %d" % (rank["peak_bytes"], rank["predicted_bytes"])))
P
}
