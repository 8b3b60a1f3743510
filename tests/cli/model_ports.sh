# Networks that do not take a single image can be shown and timed: texts, recordings, images with a time.
microtome model show --network bert_tiny --size 16 --layers | sed -n '1,2p;$p'
microtome model show --network audio_encoder_tiny --size 40 | sed -n '2,3p'
microtome model show --network unet_tiny --layer nothing
echo "exit $?"
microtome model show --network t5_mini --size 8 --plan --threads 1 --repeats 1 | tail -n 1 | grep -o 'infer, 1 threads*, [0-9]* steps'
for network in bert_tiny t5_mini audio_encoder_tiny unet_tiny transformer_encoder; do
    for how in "" --train; do
        microtome model bench --network $network --size 32 --batch 2 --threads 1 --repeats 1 $how >bench.json
        python3 -c 'import json; r = json.load(open("bench.json"))
print(r["mode"], r["batch"], r["best_ms"] > 0, r["samples_per_s"] > 0, "images_per_s" in r, r["arena_mb"] > 0)'
    done
done
microtome model bench --network unet_tiny --train --batch 4 --threads 1 --repeats 0 >plain.json
microtome model bench --network unet_tiny --train --batch 4 --threads 1 --repeats 0 --memory recompute >less.json
python3 -c 'import json; print(json.load(open("less.json"))["arena_mb"] < 0.8 * json.load(open("plain.json"))["arena_mb"])'
for options in "--size 600" "--weights x" "--memory stream" "--head max" "--features"; do
    microtome model bench --network bert_tiny $options
    echo "exit $?"
done
microtome model run x.png --network bert_tiny
echo "exit $?"
