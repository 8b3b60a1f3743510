# Ctrl-C: stops soon and leaves no half files.
set -m # so that the background job listens to SIGINT
microtome phantom -o cohort --slides 1 --size 8192 --threads 1 --quiet 2>stopped.txt &
until ls cohort/slides/*.part >/dev/null 2>&1; do sleep 0.05; done
kill -INT $!
wait $!
echo "$?"
find cohort/slides -type f
grep -c stopped stopped.txt
