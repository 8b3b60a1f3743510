# A quantised network: what is stored as int8 is shown, also after it was written and read again.
golden=$SOURCE/tests/golden/onnx_quantized.onnx
microtome model show --model $golden | sed '/^receptive/d'
microtome model convert --model $golden -o q.onnx -q
microtome model show --model q.onnx | grep int8
