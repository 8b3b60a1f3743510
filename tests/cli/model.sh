# Networks from the command line: the same scores by every way in, and clear errors.
microtome model list | sed -n 1,2p
microtome model show --network scan_tiny | tail -n 4
microtome phantom -o cohort --slides 1 --size 1024 --seed 3 -q
microtome info cohort/slides/*.tiff --thumbnail image.png >/dev/null

# the zoo with drawn weights, the same weights from safetensors, and as ONNX
microtome model convert --network scan_tiny --init-seed 5 -o w.safetensors -q
microtome model convert --network scan_tiny --init-seed 5 --size 1024 -o n.onnx -q
microtome model run image.png --network scan_tiny --init-seed 5 --size 1024 >drawn
microtome model run image.png --network scan_tiny --weights w.safetensors >loaded
microtome model run image.png --model n.onnx >imported
cmp drawn loaded && echo drawn = loaded
awk 'NR == FNR { a = $3; next } { d = $3 - a; print (d < 1e-6 && d > -1e-6) ? "drawn = imported" : "differ" }' drawn imported
microtome model run image.png --network scan_tiny --init-seed 5 --threads 2 | cmp - drawn && echo one thread = two
microtome model run image.png --network scan_tiny --init-seed 6 | cmp -s - drawn || echo another seed, other scores

# a network that ends in Softmax, LogSoftmax or Sigmoid gets no second one, unless asked for
golden=$SOURCE/tests/golden/onnx_scores
for name in logits softmax softmax_map log_softmax logits_one sigmoid_one sigmoid_labels; do
    echo "$name: $(microtome model run image.png --model $golden/$name.onnx 2>note | tr -s ' ' '\n' |
        awk '/^[0-9]/ { printf "%.4f ", $1 }')$(cat note)"
done
microtome model show --model $golden/softmax.onnx | tail -n 1
microtome model show --model $golden/softmax.onnx --scores logits | tail -n 1
microtome model run image.png --model $golden/softmax.onnx --scores logits 2>&1 | cut -c 1-24
microtome model run image.png --model $golden/softmax_swapped.onnx --scores probabilities | cut -c 1-24

# a model is converted at the size it was trained at
mkdir run && microtome model convert --network scan_tiny --init-seed 5 --size 240 -o run/model.safetensors -q
cat >run/config.json <<'END'
{ "architecture": "scan_tiny", "num_classes": 2, "patch_size_pixels": 256, "spacing_um_px": 0.5,
  "class_names": ["normal", "tumor"], "microtome": { "network": "scan_tiny" },
  "transform": [ { "name": "Resize", "arguments": { "size": [240, 240] } }, { "name": "ToTensor" } ] }
END
microtome model convert --model run -o c.onnx -q && microtome model show --model c.onnx | sed -n 2p

echo text >bad.png
cp w.safetensors w.pth
mkdir torch && cp run/config.json w.pth torch
: >empty.safetensors
head -c 100000 n.onnx >cut.onnx
for words in 'run bad.png image.png --network scan_tiny' 'run image.png --network scan_tny' \
    'run image.png --network resnet18 --weights w.safetensors' 'run image.png --model cut.onnx' \
    'run image.png --network scan_tiny --weights empty.safetensors' 'run image.png --model w.safetensors' \
    'run image.png' 'run --network scan_tiny' 'shw --network scan_tiny' 'convert --network scan_tiny -o x.txt' \
    'list more' 'run image.png --model nowhere.onnx' 'run image.png --model nowhere' \
    'run image.png --model cohort' 'run image.png --model w.pth' 'run image.png --model torch/w.pth' \
    'run image.png --network scan_tiny --weights w.pth' \
    "run image.png --model $golden/logits.onnx --scores probabilities"; do
    microtome model $words >out.txt 2>err.txt
    echo "exit $?: $(tail -n 1 err.txt | cut -c 1-150)"
done
