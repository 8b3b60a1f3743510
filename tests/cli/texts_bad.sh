# What cannot be learnt from a table of texts, or scored, is refused: by the config, by the table, by a text.
cat >run.yaml <<'Y'
network: { name: bert_tiny }
data: { train: train.csv, val: val.csv, text: text, max_tokens: 16, vocabulary: 100 }
train: { epochs: 1, batch: 2 }
Y
printf 'patient,label,text\nA,x,"one two"\nB,y,three four\nC,x,five six\nD,y,seven one\n' >train.csv
printf 'patient,label,text\nE,x,one\nF,y,three\n' >val.csv
try() { # settings; the folder must not appear
    local settings=()
    for setting in "$@"; do settings+=(--set "$setting"); done
    microtome train run.yaml -o no -q --threads 1 "${settings[@]}" >/dev/null
    echo "exit $?"
    rm -rf no
}
echo "--- config"
try data.resize_px=100
try train.tta=true
try network.norm=ws
try parallel.stages=2
try objective=segment
try network.name=resnet18
try network.name=brt_tiny
try "data.text=''" objective=classify_text
try "data.text=''" data.tokenizer=vocab.txt data.train=.
try data.max_tokens=600
try data.long=middle
try data.tokenizer=absent.txt
printf 'a\nb\n' >odd.txt
try data.tokenizer=odd.txt
echo "--- columns"
try data.text=report
try data.label=class
try data.patient_column=pateint
try data.train=absent.csv
echo "--- rows"
printf 'patient,label,text\nA,x,one two\nB,y,"  \n "\nC,x,a\n' >empty.csv
try data.train=empty.csv
printf 'patient,label,text\nA,x,one two\nB,y,caf\xe9\nC,x,a\n' >latin.csv
try data.train=latin.csv
printf 'patient,label,text\nE,x,one\nF,z,three\n' >other.csv
try data.val=other.csv
try data.val=train.csv
printf 'patient,label,text\nA,x,one\nB,x,two\n' >single.csv
try data.train=single.csv
printf 'patient,label,text\n,x,one\nB,y,two\n' >nobody.csv
try data.train=nobody.csv
try data.long=refuse data.max_tokens=4
python3 -c 'print("patient,label,text")
for i in range(4): print("P%d,%s,%s" % (i, "xy"[i % 2], " ".join(chr(0x4e00 + 40 * i + k) for k in range(40))))' >many.csv
try data.train=many.csv
echo "--- predict"
microtome train run.yaml -o run -q --threads 1 >/dev/null || exit
printf 'label,words\nx,one\n' >words.csv
score() {
    microtome predict "$@" --model run -o scores -q --threads 1
    echo "exit $?"
    [ ! -e scores/scores.csv ] || echo "scores"
}
score words.csv
score empty.csv
score latin.csv
score train.csv val.csv
score train.csv --on slurm
score train.csv
score train.csv
mv run/vocab.txt kept.txt
score train.csv --overwrite
head -n 20 kept.txt >run/vocab.txt
score train.csv --overwrite
microtome model run a.png --model run
microtome model vocabulary -o v.txt
microtome model vocabulary latin.csv -o v.txt
microtome model vocabulary words.csv -o v.txt
microtome model vocabulary many.csv --tokens 100 -o v.txt
exit 0
