# In two stages: an autoencoder (patches to small maps and back), then a model that makes such maps, then patches from
# it, with the decoder beside the weights; audited like any other.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 2 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 60 --patch 32 --label-rule any >/dev/null || exit
cat >encode.yaml <<'Y'
objective: encode
network: { name: autoencoder_4, input_px: 32 }
data: { train: stores, val_fraction: 0.25 }
train: { epochs: 12, batch: 16, monitor: last }
optimizer: { name: adam }
schedule: { learning_rate: 0.003 }
Y
microtome synthesize train encode.yaml -o encode -q --threads 2 --json >result.json || exit
awk '/"psnr"/ { sub(",", "", $2); print ($2 > 20) ? "PSNR is above 20 dB" : "PSNR is " $2 }' result.json
cat >gen.yaml <<'Y'
objective: generate
network: { name: unet_tiny, input_px: 32 }
generate: { latent: encode }
data: { train: stores, val_fraction: 0.25 }
train: { epochs: 1, batch: 16, ema: 0.9 }
optimizer: { name: adam }
Y
microtome synthesize train gen.yaml -o gen -q --set privacy.hold_out=0.5 >/dev/null || exit
sed -n '/"generator"/,/}/p' gen/config.json
cmp gen/latent.safetensors encode/model.safetensors && echo "the decoder is beside the model"
mv encode gone
microtome synthesize sample --model gen -o samples -q --n 20 --steps 2 --seed 1 --threads 1 || exit
microtome synthesize sample --model gen -o again -q --n 20 --steps 2 --seed 1 --threads 2 --format png || exit
python3 - <<'P'
import glob, h5py, numpy
from PIL import Image
with h5py.File("samples/patches.h5") as f:
    blocks = f["blocks"][:]
pngs = numpy.stack([numpy.asarray(Image.open(p)) for p in sorted(glob.glob("again/synthetic*.png"))])
print(blocks.shape, "the same" if (blocks == pngs).all() else "differ")
P
microtome synthesize audit --model gen -o audit -q >/dev/null || exit
ls audit/audit.html
echo "--- refused"
try() {
    microtome synthesize "$@" >/dev/null
    echo "exit $?" >&2
}
try train gen.yaml -o other -q
try train gen.yaml -o other -q --set generate.latent=gen
try train gen.yaml -o other -q --set generate.latent=gone --set 'data.mean=[0, 0, 0]'
try train gen.yaml -o other -q --set generate.latent=gone --set network.input_px=30
try train encode.yaml -o other -q --set network.name=unet_tiny
try train encode.yaml -o other -q --set network.name=resnet18
try train encode.yaml -o other -q --set network.input_px=30
try train encode.yaml -o other -q --set train.mixup=0.2
try sample --model gone -o other
rm gen/latent.safetensors
try sample --model gen -o other
