#!/usr/bin/env python3
"""sweep.py FOLDER [--export] [--compare BACKEND_TEST] [--table docs/models.md]: public architectures
(timm, torchvision, segmentation_models_pytorch) with drawn weights, exported by PyTorch's old exporter
(opset 13; opset 17 with the batch left open) and its new one (default opset), against ONNX Runtime.

--export writes FOLDER/EXPORTER/NETWORK/: model.onnx, an input and ONNX Runtime's output as ONNX's test
data; what is there is kept. --compare runs test_onnx_backend on every one and writes FOLDER/results.json.
--table puts the table of the results between the markers of docs/models.md. Networks are chosen with
--only REGEX, exporters with --exporter. Needs PyPI's packages: run it with PEERS_PYTHON."""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import warnings

EXPORTERS = {"13": "torch.onnx.export(dynamo=False, opset_version=13)",
             "17": "torch.onnx.export(dynamo=False, opset_version=17), batch open",
             "new": "torch.onnx.export(dynamo=True), default opset"}

# One network of every family of timm that has one of fewer than 60 million parameters; two of those
# that pathology uses most.
TIMM = """beit_base_patch16_224:depth=2 botnet26t_256 halonet26t lambda_resnet26t gcresnet33ts gernet_s mobileone_s0
cait_xxs24_224:depth=4 coat_lite_tiny coat_tiny convit_tiny convmixer_768_32 convnext_atto convnext_tiny
convnextv2_atto cpubone_nano crossvit_9_240 crossvit_9_dagger_240 csatv2 cs3darknet_focus_s cspnext_tiny davit_tiny
deit_tiny_patch16_224 deit_tiny_distilled_patch16_224 deit3_small_patch16_224:depth=4 densenet121
densenetblur121d dla46_c dpn48b edgenext_xx_small efficientformer_l1 efficientformerv2_s0 efficientnet_b0
efficientnet_b0_gn tf_efficientnetv2_b0 tf_efficientnet_b0 mixnet_s mnasnet_050 mobilenetv2_050 efficientvim_m1
efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 fastvit_sa12 focalnet_tiny_srf
gcvit_xxtiny ghostnet_050 ghostnetv2_100 ghostnetv3_050 hardcorenas_a hgnetv2_b0 hiera_tiny_224 hieradet_small
hrnet_w18_small iformer_t inception_next_atto inception_resnet_v2 inception_v3 inception_v4 lcnetv2_small
levit_128s levit_conv_128s lowformer_b0 mambaout_femto coatnet_pico_rw_224 maxvit_pico_rw_256 maxvit_tiny_tf_224
caformer_s18 poolformer_s12 gmlp_ti16_224 mixer_s32_224 resmlp_12_224 lcnet_035 mobilenetv3_small_050
mobilenetv3_large_100 mobilenetv4_conv_small mobilenetv4_hybrid_medium mobilevit_xxs mobilevitv2_050 mvitv2_tiny
naflexvit_base_patch16_gap:depth=2 nest_tiny nextvit_small nf_resnet26 dm_nfnet_f0 eca_nfnet_l0 pit_ti_224
pvt_v2_b0 pvt_v2_b2_li rdnet_tiny regnetx_002 regnety_002 repghostnet_050 repvit_m0_9 res2net50_14w_8s resnest14d
resnet18 resnet50 resnet26d ecaresnet26t seresnext26d_32x4d resnetblur50 resnetv2_18 resnetv2_50x1_bit rexnet_100
selecsls42 legacy_seresnet18 sequencer2d_s shvit_s1 skresnet18 starnet_s050 swiftformer_xs
swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 swinv2_cr_tiny_224 tiny_vit_5m_224 tnt_s_patch16_224 tresnet_m
twins_pcpvt_small twins_svt_small vgg11_bn visformer_tiny vit_tiny_patch16_224 vit_small_patch16_224
vit_small_patch14_reg4_dinov2:img_size=224,depth=4 vit_small_patch14_dinov2:img_size=224,depth=4
vit_tiny_r_s16_p8_224 vit_relpos_small_patch16_224:depth=4 vit_srelpos_small_patch16_224:depth=4
samvit_base_patch16_224:depth=3 vitamin_small_224 volo_d1_224 ese_vovnet19b_dw vovnet39a legacy_xception xception41
xcit_nano_12_p16_224""".split()
TORCHVISION = """alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t
mnasnet0_5 mobilenet_v2 mobilenet_v3_small regnet_y_400mf resnet18 resnext50_32x4d shufflenet_v2_x0_5
squeezenet1_1 swin_t swin_v2_t vgg11 vit_b_16""".split()
TORCHVISION_SEGMENTATION = "deeplabv3_mobilenet_v3_large deeplabv3_resnet50 fcn_resnet50 lraspp_mobilenet_v3_large".split()
SMP = {"Unet": "resnet18", "UnetPlusPlus": "resnet18", "MAnet": "resnet18", "Linknet": "resnet18", "FPN": "resnet18",
       "PSPNet": "resnet18", "PAN": "resnet18", "DeepLabV3": "resnet18", "DeepLabV3Plus": "resnet18",
       "UPerNet": "resnet18", "Segformer": "mit_b0"}
# What pathology's foundation models are: their settings, at reduced depth.
FOUNDATION = {
    "ctranspath-like": ("swin_tiny_patch4_window7_224", {}),
    "phikon-like": ("vit_base_patch16_224", {"depth": 2}),
    "uni-like": ("vit_large_patch16_224", {"img_size": 224, "init_values": 1e-5, "num_classes": 0,
                                           "dynamic_img_size": True, "depth": 2}),
    "virchow-like": ("vit_huge_patch14_224", {"img_size": 224, "init_values": 1e-5, "num_classes": 0, "depth": 2,
                                              "mlp_ratio": 5.3375, "global_pool": "", "dynamic_img_size": True,
                                              "mlp_layer": "SwiGLUPacked", "act_layer": "silu"}),
    "uni2-like": ("vit_giant_patch14_224", {"img_size": 224, "depth": 2, "num_heads": 24, "init_values": 1e-5,
                                            "embed_dim": 1536, "mlp_ratio": 2.66667 * 2, "num_classes": 0,
                                            "no_embed_class": True, "mlp_layer": "SwiGLUPacked",
                                            "act_layer": "silu", "reg_tokens": 8, "dynamic_img_size": True}),
    "gigapath-like": ("vit_giant_patch14_dinov2", {"img_size": 224, "depth": 2, "patch_size": 16,
                                                   "num_classes": 0}),
}


def timm_network(text):
    import timm
    name, _, rest = text.partition(":")
    options = {k: int(v) for k, v in (pair.split("=") for pair in rest.split(",") if pair)}
    if "depth" in options and name.startswith("samvit"):
        options["global_attn_indexes"] = [2]
    network = timm.create_model(name, pretrained=False, **options)
    size = (3, 224, 224) if "img_size" in options else network.default_cfg["input_size"]
    return network, size


def foundation(name):
    import timm
    import torch
    base, options = FOUNDATION[name]
    options = dict(options)
    if options.get("mlp_layer"):
        options["mlp_layer"] = timm.layers.SwiGLUPacked
        options["act_layer"] = torch.nn.SiLU
    return timm.create_model(base, pretrained=False, **options), (3, 224, 224)


class First(object):
    """Makes a module that gives the first output of one that gives several by name."""

    @staticmethod
    def of(network):
        import torch

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.network = network

            def forward(self, x):
                return self.network(x)["out"]

        return Out()


def torchvision_network(name):
    from torchvision import models
    options = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=False)
    return models.get_model(name, **options), (3, 224, 224) if name != "inception_v3" else (3, 299, 299)


def torchvision_segmentation(name):
    from torchvision.models import segmentation
    network = getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=5)
    return First.of(network), (3, 128, 128)


def smp_network(name):
    import segmentation_models_pytorch as smp
    return getattr(smp, name)(SMP[name], encoder_weights=None, classes=3), (3, 128, 128)


def cases():
    """name -> (source, function that makes network and input size)"""
    out = {}
    for text in TIMM:
        out["timm-" + text.partition(":")[0]] = ("timm", lambda text=text: timm_network(text))
    for name in TORCHVISION:
        out["torchvision-" + name] = ("torchvision", lambda name=name: torchvision_network(name))
    for name in TORCHVISION_SEGMENTATION:
        out["torchvision-" + name] = ("segmentation", lambda name=name: torchvision_segmentation(name))
    for name in SMP:
        out["smp-" + name] = ("segmentation", lambda name=name: smp_network(name))
    for name in FOUNDATION:
        out["foundation-" + name] = ("foundation", lambda name=name: foundation(name))
    return out


def draw(network):
    """Parameters that start as one number (norms, layer scales, biases) would hide errors."""
    import torch
    torch.manual_seed(1)
    for name, tensor in list(network.named_parameters()) + list(network.named_buffers()):
        if not tensor.is_floating_point() or tensor.numel() < 2 or tensor.min() != tensor.max():
            continue
        if name.endswith("running_var") or tensor.flatten()[0] == 1:
            tensor.data.uniform_(0.5, 1.5)
        elif name in dict(network.named_parameters()) or name.endswith("running_mean"):
            tensor.data.normal_(0, 0.1)


def export(network, x, exporter, path):
    import torch
    if exporter == "new":
        torch.onnx.export(network, (x,), path, input_names=["input"], output_names=["output"], dynamo=True,
                          verbose=False)
    else:
        axes = {"input": {0: "batch"}, "output": {0: "batch"}} if exporter == "17" else None
        torch.onnx.export(network, x, path, opset_version=int(exporter), input_names=["input"],
                          output_names=["output"], dynamic_axes=axes, dynamo=False)


def write_tensor(path, array):
    import onnx.numpy_helper
    with open(path, "wb") as out:
        out.write(onnx.numpy_helper.from_array(array).SerializeToString())


def export_all(folder, chosen, exporters):
    import numpy
    import onnxruntime
    import torch
    torch.set_num_threads(1)

    def reference(path, x):
        """ONNX Runtime's output; without its optimisations where these change it by half of what is allowed."""
        outputs = []
        for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = 1
            settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
            outputs.append(session.run(None, {session.get_inputs()[0].name: x})[0])
        close = numpy.abs(outputs[0] - outputs[1]).max() <= 5e-5 * numpy.abs(outputs[1]).max()
        return outputs[0 if close else 1]

    for exporter in exporters:
        for name, (_, make) in chosen.items():
            target = os.path.join(folder, exporter, name)
            if os.path.exists(target) or os.path.exists(target + ".failed"):
                continue
            draft = target + ".draft"
            shutil.rmtree(draft, ignore_errors=True)
            os.makedirs(os.path.join(draft, "test_data_set_0"))
            try:
                torch.manual_seed(1)
                network, size = make()
                draw(network)
                network.eval()
                x = torch.randn(1, *size)
                path = os.path.join(draft, "model.onnx")
                export(network, x, exporter, path)
                y = reference(path, x.numpy())
                if not numpy.isfinite(y).all() or y.std() < 1e-6 * numpy.abs(y).max():
                    raise ValueError("ONNX Runtime's output says nothing: infinite or all the same")
                write_tensor(os.path.join(draft, "test_data_set_0", "input_0.pb"), x.numpy())
                write_tensor(os.path.join(draft, "test_data_set_0", "output_0.pb"), y)
                os.rename(draft, target)
                print(f"{exporter} {name}", flush=True)
            except Exception as problem:  # the exporter's or ONNX Runtime's, not ours: kept with its reason
                shutil.rmtree(draft, ignore_errors=True)
                with open(target + ".failed", "w") as out:
                    out.write(str(problem)[:2000])
                print(f"{exporter} {name}: not exported: {str(problem)[:150]!r}", flush=True)


def compare(folder, backend, chosen, exporters):
    path = os.path.join(folder, "results.json")
    results = json.load(open(path)) if os.path.exists(path) else {}
    for exporter in exporters:
        for name in chosen:
            case = os.path.join(folder, exporter, name)
            if not os.path.isdir(case):
                continue
            run = subprocess.run([backend, exporter, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env={**os.environ, "ONNX_TESTDATA": folder})
            said = re.search(r"^(equal|refused|wrong): \S+: (.*)$", run.stdout.decode(), re.M)
            verdict, text = said.groups() if said else ("wrong", f"ended with {run.returncode}")
            results[f"{exporter}/{name}"] = [verdict, text.replace(case + "/", "")]
            print(f"{exporter} {name}: {verdict}: {text[-150:]}", flush=True)
            with open(path, "w") as out:
                json.dump(results, out, indent=1, sort_keys=True)


def table(folder, page, known):
    results = json.load(open(os.path.join(folder, "results.json")))
    rows, total = [], collections.Counter()
    for source in ("timm", "torchvision", "segmentation", "foundation"):
        for exporter in EXPORTERS:
            counts = collections.Counter(v[0] for k, v in results.items() if k.split("/")[0] == exporter and
                                         known.get(k.split("/")[1], ("",))[0] == source)
            total.update(counts)
            rows.append(f"| {source} | {EXPORTERS[exporter]} | {sum(counts.values())} | {counts['equal']} | "
                        f"{counts['refused']} | {counts['wrong']} |")
    rows.append(f"| all | | {sum(total.values())} | {total['equal']} | {total['refused']} | {total['wrong']} |")
    refused = collections.defaultdict(list)
    for key, (verdict, text) in sorted(results.items()):
        if verdict != "equal" and key.split("/")[1] in known:
            reason = re.sub(r"^.*?node '.*?': ", "", text)
            refused[reason].append(key.split("/")[1] + " (" + key.split("/")[0] + ")")
    lines = ["| networks | exporter | files | equal | refused | wrong |", "|---|---|---|---|---|---|", *rows, ""]
    for reason, names in sorted(refused.items(), key=lambda item: -len(item[1])):
        lines.append(f"- {', '.join(names)}: {reason}")
    text = open(page).read()
    begin, end = "<!-- table of tests/onnx/sweep.py -->", "<!-- end of the table -->"
    if begin not in text or end not in text:
        sys.exit(f"{page}: no lines {begin} and {end}")
    text = text[:text.index(begin) + len(begin)] + "\n" + "\n".join(lines) + "\n" + text[text.index(end):]
    with open(page, "w") as out:
        out.write(text)


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--compare", metavar="BACKEND_TEST")
    parser.add_argument("--table", metavar="PAGE")
    parser.add_argument("--only", default="")
    parser.add_argument("--exporter", action="append", choices=list(EXPORTERS))
    given = parser.parse_args()
    known = cases()
    chosen = {name: case for name, case in known.items() if re.search(given.only, name)}
    exporters = given.exporter or list(EXPORTERS)
    if given.export:
        export_all(given.folder, chosen, exporters)
    if given.compare:
        compare(given.folder, given.compare, chosen, exporters)
    if given.table:
        table(given.folder, given.table, known)


if __name__ == "__main__":
    main()
