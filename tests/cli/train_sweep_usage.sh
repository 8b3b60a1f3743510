# What cannot be swept is refused before anything starts.
cat >run.yaml <<'Y'
data: { train: stores }
Y
try() {
    microtome train run.yaml -q -o out "$@"
    echo "exit $?" >&2
}
try --sweep lr
try --sweep =1
try --sweep lr=
try --sweep lr=0.1,,0.2
try --sweep lr=0.1,0.10
try --sweep lr=fast
try --sweep lr=0.1 --sweep schedule.learning_rate=0.2
try --sweep rate=0.1
try --sweep train.epoch=3
try --sweep name=resnet50
try --sweep train.monitor=auc,loss
try --sweep network.name=resnet18,resnet19
try --sweep network.input_px=160,64
try --sweep lr=0.1,0.2 --set network.input_px=64
try --sweep network.name=scan_tiny,unet
try --sweep train=3
try --sweep 'lr= 0.1, 0.1'
try --sweep 'lr=[0.1'
try --sweep 'mean=[0.5,0.5,0.5],[0.5,0.5]'
try --sweep "seed=$(seq -s, 101)" --sweep "batch=$(seq -s, 100)"
microtome train gone.yaml -q -o out --sweep lr=0.1
echo "--- names"
microtome train run.yaml -q -o out --threads 1 --sweep 'mean=[0.5,0.5,0.5],[0.4,0.4,0.4]' --sweep 'weights=a/b.safetensors' 2>/dev/null
ls out
