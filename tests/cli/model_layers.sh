# Layers have names: those of the zoo, the same through ONNX, and those of a file of another program.
golden=$SOURCE/tests/golden/onnx_scores
microtome model show --network resnet18 --layers | sed -n '1,5p;$p'
microtome model show --network resnet50 --layer layer4
microtome model show --network vit_small_patch16_224 --layer blocks.11
microtome model show --network scan_tiny --layers --json | sed -n 1,2p
microtome model convert --network densenet121 --init-seed 5 --size 64 --classes 2 -o d.onnx -q
microtome model show --network densenet121 --size 64 --classes 2 --layers >declared
microtome model show --model d.onnx --layers | cmp - declared && echo restored
microtome model show --model $golden/softmax.onnx --layers | sed -n '1,2p'
for layer in layr4 nothing.like.it fc.weight; do
    microtome model show --network resnet18 --layer $layer
    echo "exit $?"
done 2>&1
