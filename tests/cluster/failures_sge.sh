#!/usr/bin/env bash
# On Grid Engine a task that is killed, one that exits with 1 and one whose whole job is killed: the rest
# continues, what is missing is reported, and the same command again completes it: nothing twice,
# nothing lost, the same bytes.
port=21900
. "$(dirname "$0")/lib.sh"
sge_up
links 5
failing_site
extract one >/dev/null || fail "the local run"
extract hurt --on sge --site site.yaml --wait >hurt.txt 2>hurt.err && fail "the last job saw nothing missing"
missing_then_whole sge 5
echo ok
