/* zoo.c: the table of networks, and a graph from a name. */
#include "net/zoo/zoo.h"
#include "base/names.h"
#include "net/zoo/parts.h"

static const struct zoo_network networks[] = {
    { "scan_tiny", "residual without padding, stride 16; trains in seconds", zoo_scan_tiny,
      ZOO_IMAGE, 3, 224, 2, true },
    { "scan_small", "residual without padding, stride 16; 1 M parameters", zoo_scan_small,
      ZOO_IMAGE, 3, 224, 2, true },
    { "scan_base", "residual without padding, stride 16; costs as much as ResNet-18", zoo_scan_base,
      ZOO_IMAGE, 3, 224, 2, true },
    { "scan_wide", "residual without padding, stride 64; sees 564 px, for large tiles",
      zoo_scan_wide, ZOO_IMAGE, 3, 1012, 2, true },
    { "resnet18", "torchvision's ResNet-18", zoo_resnet18, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet34", "torchvision's ResNet-34", zoo_resnet34, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet50", "torchvision's ResNet-50", zoo_resnet50, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet101", "torchvision's ResNet-101", zoo_resnet101, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet152", "torchvision's ResNet-152", zoo_resnet152, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet110_v2", "CIFAR's pre-activation ResNet-110, any size", zoo_resnet110_v2, ZOO_IMAGE, 3,
      32, 10, false },
    { "preactresnet34", "WSInfer's pre-activation ResNet-34", zoo_preactresnet34, ZOO_IMAGE, 3, 224,
      2, false },
    { "googlenet", "torchvision's GoogLeNet", zoo_googlenet, ZOO_IMAGE, 3, 224, 1000, false },
    { "inception_v3", "torchvision's Inception v3", zoo_inception_v3, ZOO_IMAGE, 3, 299, 1000,
      false },
    { "inception_v4", "timm's Inception v4", zoo_inception_v4, ZOO_IMAGE, 3, 299, 1000, false },
    { "inception_v4nobn", "WSInfer's Inception v4 without batch norm", zoo_inception_v4, ZOO_IMAGE,
      3, 299, 2, false },
    { "inception_resnet_v2", "timm's Inception-ResNet v2", zoo_inception_resnet_v2, ZOO_IMAGE, 3,
      299, 1000, false },
    { "densenet121", "torchvision's DenseNet-121", zoo_densenet121, ZOO_IMAGE, 3, 224, 1000,
      false },
    { "densenet161", "torchvision's DenseNet-161", zoo_densenet161, ZOO_IMAGE, 3, 224, 1000,
      false },
    { "vgg16", "torchvision's VGG-16", zoo_vgg16, ZOO_IMAGE, 3, 224, 1000, false },
    { "vgg16_bn", "torchvision's VGG-16 with batch norm", zoo_vgg16_bn, ZOO_IMAGE, 3, 224, 1000,
      false },
    { "vgg16mod", "WSInfer's VGG-16 with a smaller classifier", zoo_vgg16mod, ZOO_IMAGE, 3, 224, 2,
      false },
    { "vit_tiny_patch16_224", "timm's ViT-Ti/16", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_small_patch16_224", "timm's ViT-S/16", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_small_patch32_224", "timm's ViT-S/32", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_base_patch8_224", "timm's ViT-B/8", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_base_patch16_224", "timm's ViT-B/16", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_base_patch32_224", "timm's ViT-B/32", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_large_patch14_224", "timm's ViT-L/14", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_large_patch16_224", "timm's ViT-L/16", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_huge_patch14_224", "timm's ViT-H/14", zoo_vit, ZOO_IMAGE, 3, 224, 1000, false },
    { "vit_small_patch14_dinov2", "DINOv2's ViT-S/14", zoo_vit, ZOO_IMAGE, 3, 518, 1000, false },
    { "vit_base_patch14_dinov2", "DINOv2's ViT-B/14", zoo_vit, ZOO_IMAGE, 3, 518, 1000, false },
    { "vit_large_patch14_dinov2", "DINOv2's ViT-L/14", zoo_vit, ZOO_IMAGE, 3, 518, 1000, false },
    { "vit_giant_patch14_dinov2", "DINOv2's ViT-g/14, with SwiGLU", zoo_vit, ZOO_IMAGE, 3, 518,
      1000, false },
    { "vit_small_patch14_reg4_dinov2", "ViT-S/14 with register tokens", zoo_vit, ZOO_IMAGE, 3, 518,
      1000, false },
    { "vit_base_patch14_reg4_dinov2", "ViT-B/14 with register tokens", zoo_vit, ZOO_IMAGE, 3, 518,
      1000, false },
    { "vit_large_patch14_reg4_dinov2", "ViT-L/14 with register tokens", zoo_vit, ZOO_IMAGE, 3, 518,
      1000, false },
    { "vit_giant_patch14_reg4_dinov2", "ViT-g/14 with register tokens and SwiGLU", zoo_vit,
      ZOO_IMAGE, 3, 518, 1000, false },
    { "convnext_tiny", "timm's ConvNeXt-T", zoo_convnext, ZOO_IMAGE, 3, 224, 1000, false },
    { "convnext_small", "timm's ConvNeXt-S", zoo_convnext, ZOO_IMAGE, 3, 224, 1000, false },
    { "convnext_base", "timm's ConvNeXt-B", zoo_convnext, ZOO_IMAGE, 3, 224, 1000, false },
    { "convnext_large", "timm's ConvNeXt-L", zoo_convnext, ZOO_IMAGE, 3, 224, 1000, false },
    { "swin_tiny_patch4_window7_224", "timm's Swin-T", zoo_swin, ZOO_IMAGE, 3, 224, 1000, false },
    { "swin_small_patch4_window7_224", "timm's Swin-S", zoo_swin, ZOO_IMAGE, 3, 224, 1000, false },
    { "swin_base_patch4_window7_224", "timm's Swin-B", zoo_swin, ZOO_IMAGE, 3, 224, 1000, false },
    { "swin_large_patch4_window7_224", "timm's Swin-L", zoo_swin, ZOO_IMAGE, 3, 224, 1000, false },
    { "ctranspath", "Swin-T with a convolutional stem, for pathology", zoo_swin, ZOO_IMAGE, 3, 224,
      1000, false },
    { "efficientnet_b0", "timm's EfficientNet-B0", zoo_efficientnet, ZOO_IMAGE, 3, 224, 1000,
      false },
    { "efficientnet_b1", "timm's EfficientNet-B1", zoo_efficientnet, ZOO_IMAGE, 3, 240, 1000,
      false },
    { "efficientnet_b2", "timm's EfficientNet-B2", zoo_efficientnet, ZOO_IMAGE, 3, 256, 1000,
      false },
    { "efficientnet_b3", "timm's EfficientNet-B3", zoo_efficientnet, ZOO_IMAGE, 3, 288, 1000,
      false },
    { "efficientnet_b4", "timm's EfficientNet-B4", zoo_efficientnet, ZOO_IMAGE, 3, 320, 1000,
      false },
    { "efficientnet_b5", "timm's EfficientNet-B5", zoo_efficientnet, ZOO_IMAGE, 3, 448, 1000,
      false },
    { "efficientnet_b6", "timm's EfficientNet-B6", zoo_efficientnet, ZOO_IMAGE, 3, 528, 1000,
      false },
    { "efficientnet_b7", "timm's EfficientNet-B7", zoo_efficientnet, ZOO_IMAGE, 3, 600, 1000,
      false },
    { "transformer_encoder", "pre-norm Transformer encoder on embedded tokens", zoo_transformer,
      ZOO_TOKENS, 512, 128, 2, false },
    { "bert_tiny", "BERT of texts, 2 layers of 128", zoo_bert, ZOO_TEXT, 30522, 256, 2, false },
    { "bert_mini", "BERT of texts, 4 layers of 256", zoo_bert, ZOO_TEXT, 30522, 256, 2, false },
    { "bert_small", "BERT of texts, 4 layers of 512", zoo_bert, ZOO_TEXT, 30522, 256, 2, false },
    { "bert_base", "BERT of texts, 12 layers of 768", zoo_bert, ZOO_TEXT, 30522, 256, 2, false },
    { "prenorm_tiny", "encoder of texts, RoBERTa-PreLayerNorm, 2 layers of 128", zoo_bert, ZOO_TEXT,
      30522, 256, 2, false },
    { "prenorm_mini", "the same, 4 layers of 256", zoo_bert, ZOO_TEXT, 30522, 256, 2, false },
    { "prenorm_small", "the same, 4 layers of 512", zoo_bert, ZOO_TEXT, 30522, 256, 2, false },
    { "t5_mini", "encoder of texts as in T5 1.1, 4 layers of 256", zoo_t5, ZOO_TEXT, 32128, 256, 2,
      false },
    { "t5_small", "T5 1.1's small encoder", zoo_t5, ZOO_TEXT, 32128, 256, 2, false },
    { "t5_base", "T5 1.1's base encoder", zoo_t5, ZOO_TEXT, 32128, 256, 2, false },
    { "audio_encoder_tiny", "encoder of recordings: convolutions, then prenorm_tiny", zoo_audio,
      ZOO_AUDIO, 80, 400, 2, false },
    { "audio_encoder_small", "the same with prenorm_mini", zoo_audio, ZOO_AUDIO, 80, 400, 2,
      false },
    { "unet_tiny", "diffusion U-Net with time and condition; trains in minutes", zoo_unet_tiny,
      ZOO_IMAGE_AND_TIME, 3, 32, 0, false },
    { "unet_small", "the same, twice as wide", zoo_unet_small, ZOO_IMAGE_AND_TIME, 3, 32, 0,
      false },
    { "unet", "the same, larger and deeper", zoo_unet, ZOO_IMAGE_AND_TIME, 3, 64, 0, false },
    { "unet_large", "the same, for clusters", zoo_unet_large, ZOO_IMAGE_AND_TIME, 3, 256, 0,
      false },
    { "segment_unet", "small U-Net that segments: a class for every pixel", zoo_segment_unet,
      ZOO_IMAGE, 3, 256, 3, false },
    { "autoencoder_4", "images to maps of a quarter of their side, and back", zoo_autoencoder_4,
      ZOO_IMAGE, 3, 256, 0, false },
    { "autoencoder_8", "the same to an eighth", zoo_autoencoder_8, ZOO_IMAGE, 3, 256, 0, false },
};
enum { NETWORKS = sizeof networks / sizeof networks[0] };

const struct zoo_network *zoo_networks(size_t *count)
{
    *count = NETWORKS;
    return networks;
}

const struct zoo_network *zoo_find(const char *name, struct err *err)
{
    const char *names[NETWORKS];
    for (size_t i = 0; i < NETWORKS; i++) {
        if (strcmp(networks[i].name, name) == 0)
            return &networks[i];
        names[i] = networks[i].name;
    }
    const char *nearest = names_nearest(name, names, NETWORKS);
    if (nearest)
        err_set(err, ERR_USAGE, "no network '%s'; did you mean %s?", name, nearest);
    else
        err_set(err, ERR_USAGE, "no network '%s'; 'microtome model list' lists them", name);
    return NULL;
}

static bool complete(const struct zoo_network *network, const struct zoo_options *given,
                     struct zoo_options *out, struct err *err)
{
    struct zoo_options o = given ? *given : (struct zoo_options){ 0 };
    if (o.batch < 0 || o.channels < 0 || o.height < 0 || o.width < 0 || o.classes < 0 ||
        o.conditions < 0 || o.depth < 0)
        return err_set(err, ERR_USAGE,
                       "%s: batch, channels, size, classes and depth must be positive",
                       network->name);
    o.batch = o.batch ? o.batch : 1;
    o.channels = o.channels ? o.channels : network->channels;
    o.height = o.height ? o.height : network->side;
    o.width = o.width ? o.width : network->side;
    if (!o.classes)
        o.classes = network->classes ? network->classes : o.channels;
    *out = o;
    return true;
}

static bool gives_what_is_asked(const struct graph *graph, const struct zoo_options *options,
                                struct err *err)
{
    return !options->features || strcmp(graph->outputs[0].name, "embedding") == 0 ||
           err_set(err, ERR_USAGE,
                   "%s: has no features: it does not end in a layer that classifies them",
                   graph->name);
}

bool zoo_build(const char *name, const struct zoo_options *options, struct graph **out,
               struct err *err)
{
    struct zoo_options completed;
    const struct zoo_network *network = zoo_find(name, err);
    if (!network || !complete(network, options, &completed, err))
        return false;
    struct graph *graph = graph_new(name);
    if (!graph)
        return err_memory(err, name);
    network->build(graph, &completed);
    if (!graph_ok(graph, err) || !gives_what_is_asked(graph, &completed, err)) {
        graph_free(graph);
        return false;
    }
    *out = graph;
    return true;
}

int64_t zoo_larger_px(const char *name, const struct zoo_options *options)
{
    struct zoo_options larger = *options;
    for (int64_t px = options->height / 16 * 16 + 16; px <= 1024; px += 16) {
        struct graph *graph = NULL;
        larger.height = larger.width = px;
        bool fits = zoo_build(name, &larger, &graph, NULL);
        graph_free(graph);
        if (fits)
            return px;
    }
    return 0;
}
