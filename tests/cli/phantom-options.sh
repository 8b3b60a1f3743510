# Wrong options name themselves and the remedy; nothing is written.
microtome phantom --slides 2; echo "$?"
microtome phantom -o cohort; echo "$?"
microtome phantom -o cohort --slides 0; echo "$?"
microtome phantom -o cohort --slides 2 --size 100; echo "$?"
microtome phantom -o cohort --slides two; echo "$?"
microtome phantom -o cohort --slides 2 --sed 3; echo "$?"
microtome phantom -o cohort --slides 2 extra; echo "$?"
ls
touch file
microtome phantom -o file --slides 1 --size 1024; echo "$?"
