# Ctrl-C: stops soon, leaves no half files, and the next run finishes.
set -m # so that the background job listens to SIGINT
microtome phantom -o cohort --slides 1 --size 8192 --quiet 2>stopped.txt &
sleep 0.7
kill -INT $!
wait $!
echo "$?"
find cohort/slides -type f
grep -c stopped stopped.txt
