# What cannot be learnt from a table of recordings, or scored, is refused: by the config, by the table, by a file.
here=$(dirname "$0")
python3 "$here/make_recordings.py" . || exit
cat >run.yaml <<'Y'
network: { name: audio_encoder_tiny }
data: { train: train.csv, val: val.csv, audio: file, patient_column: speaker, max_seconds: 0.6 }
train: { epochs: 1, batch: 6 }
Y
try() { # settings; the folder must not appear
    local settings=()
    for setting in "$@"; do settings+=(--set "$setting"); done
    microtome train run.yaml -o no -q --threads 1 "${settings[@]}" >/dev/null
    echo "exit $?"
    rm -rf no
}
table() { # of one file
    printf 'speaker,label,file\nA,rise,wav/s0-rise-0.wav\nB,fall,%s\nC,stay,wav/s1-stay-0.wav\n' "$1" >bad.csv
}
echo "--- config"
try data.resize_px=100
try train.mixup=0.2
try data.text=label
try data.tokenizer=vocab.txt
try data.long=head_tail
try data.max_seconds=30
try parallel.stages=2
try objective=segment
try "data.audio=''" objective=classify_audio
try network.name=bert_tiny
try network.name=audio_encoder
echo "--- columns"
try data.audio=path
try data.patient_column=speeker
try data.train=absent.csv
echo "--- files"
table wav/absent.wav && try data.train=bad.csv
head -c 1000 wav/s0-rise-0.wav >short.wav
table short.wav && try data.train=bad.csv
head -c 20 wav/s0-rise-0.wav >shorter.wav
table shorter.wav && try data.train=bad.csv
printf 'ID3 not a WAV file' >sound.mp3
table sound.mp3 && try data.train=bad.csv
table "" && try data.train=bad.csv
try data.val=train.csv
try data.long=refuse data.max_seconds=0.2
echo "--- predict"
microtome train run.yaml -o run -q --threads 1 >/dev/null || exit
score() {
    microtome predict "$@" --model run -o scores -q --threads 1
    echo "exit $?"
    [ ! -e scores/scores.csv ] || echo "scores"
}
printf 'label,path\nrise,a.wav\n' >words.csv
score words.csv
table short.wav && score bad.csv
score train.csv val.csv
score train.csv --on slurm
score val.csv
score val.csv
sed -i 's/"window_samples": 400/"window_samples": 394/' run/config.json
score val.csv --overwrite
sed -i 's/"window_samples": 394/"window_samples": 400/; s/"max_frames": 60/"max_frames": 58/' run/config.json
score val.csv --overwrite
microtome model run a.png --model run
exit 0
