# Finds results by what they are; says what it looked for where there are none.
microtome report
echo "no operand: $?"
microtome report . -o page
echo "nothing here: $?"
microtome report . -o .
echo "into the results: $?"
mkdir -p model scores
printf 'epoch,train_loss,val_loss\n1,0.7,0.6\n2,0.5,0.4\n' >model/metrics.csv
printf 'slide,score,label\na.svs,0.9,tumor\nb.svs,0.1,normal\n' >scores/slides.csv
microtome report model scores -o page --title 'A & B' -q
grep -o '<title>[^/]*' page/index.html
grep -c '<article' page/index.html
microtome report . -o page --json -q
printf 'slide,score\n"open quote,1\n' >scores/broken.csv
microtome report . -o page -q
grep -o 'class="problem">[^<]*' page/index.html
