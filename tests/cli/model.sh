# Networks from the command line: the same scores by every way in, and clear errors.
microtome model list | head -n 2
microtome model show --network scan_tiny | tail -n 3
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

echo text >bad.png
: >empty.safetensors
head -c 100000 n.onnx >cut.onnx
for words in 'run bad.png image.png --network scan_tiny' 'run image.png --network scan_tny' \
    'run image.png --network resnet18 --weights w.safetensors' 'run image.png --model cut.onnx' \
    'run image.png --network scan_tiny --weights empty.safetensors' 'run image.png --model w.safetensors' \
    'run image.png' 'run --network scan_tiny' 'shw --network scan_tiny' 'convert --network scan_tiny -o x.txt' \
    'list more' 'run image.png --model nowhere.onnx' 'run image.png --model nowhere' \
    'run image.png --model cohort'; do
    microtome model $words >out.txt 2>err.txt
    echo "exit $?: $(tail -n 1 err.txt | cut -c 1-150)"
done
