# Heatmaps of networks that end in logits or in probabilities: the same scores, and a record of it.
microtome phantom -o c --slides 1 --size 1024 --seed 1 --quiet
golden=$SOURCE/tests/golden/onnx_scores
run() { microtome predict c/slides -o "$1" --model $golden/$2.onnx --stride 8 --export none --quiet "${@:3}" >/dev/null; }
slide=patient_000_node_0
bytes() { tail -c +129 "$1/$slide/heatmap.npy" | od -An -v -tf4 -w4; } # behind the header
near() {
    paste <(bytes "$1") <(bytes "$2") | awk '
        $1 != $2 { d = $1 - $2; if (d < 0) d = -d; if (!(d < 1e-6)) bad++ }
        $1 == $1 + 0 { n++ }
        END { print (n > 100 && !bad ? "the same" : "different: " bad " of " n) }'
}
how() { grep -o '"mode": "[a-z]*"' $1/$slide/heatmap.json; grep -o 'scores=[A-Za-z-]*' $1/$slide/heatmap.json || echo usual; }

for name in logits softmax log_softmax softmax_map logits_one sigmoid_one; do
    run $name $name
    echo "$name: $(how $name | tr '\n' ' ')"
done
run windows softmax --mode window
run hidden softmax_swapped --scores probabilities
run twice softmax --scores logits
echo "softmax: $(near logits softmax)"
echo "softmax by windows: $(near logits windows)"
echo "log_softmax: $(near logits log_softmax)"
echo "softmax_map: $(near logits softmax_map)"
echo "sigmoid_one: $(near logits_one sigmoid_one)"
echo "hidden: $(how hidden | tr '\n' ' ')"
echo "twice: $(how twice | tr '\n' ' ')"
near logits twice | sed 's/:.*//'
echo "== other scores are another result"
run softmax softmax --scores logits || echo "exit $?"
echo "== what seems to be probabilities is not taken for logits"
run seems softmax_swapped || echo "exit $?"
echo "== a calibration needs logits"
run affine softmax_swapped --scores probabilities --mode dense --calibrate affine || echo "exit $?"
