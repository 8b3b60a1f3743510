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
    { "resnet18", "torchvision's ResNet-18", zoo_resnet18, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet34", "torchvision's ResNet-34", zoo_resnet34, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet50", "torchvision's ResNet-50", zoo_resnet50, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet101", "torchvision's ResNet-101", zoo_resnet101, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet152", "torchvision's ResNet-152", zoo_resnet152, ZOO_IMAGE, 3, 224, 1000, false },
    { "resnet110_v2", "CIFAR's pre-activation ResNet-110, any size", zoo_resnet110_v2, ZOO_IMAGE, 3,
      32, 10, false },
    { "googlenet", "torchvision's GoogLeNet", zoo_googlenet, ZOO_IMAGE, 3, 224, 1000, false },
    { "inception_v3", "torchvision's Inception v3", zoo_inception_v3, ZOO_IMAGE, 3, 299, 1000,
      false },
    { "inception_resnet_v2", "timm's Inception-ResNet v2", zoo_inception_resnet_v2, ZOO_IMAGE, 3,
      299, 1000, false },
    { "densenet121", "torchvision's DenseNet-121", zoo_densenet121, ZOO_IMAGE, 3, 224, 1000,
      false },
    { "densenet161", "torchvision's DenseNet-161", zoo_densenet161, ZOO_IMAGE, 3, 224, 1000,
      false },
    { "vgg16_bn", "torchvision's VGG-16 with batch norm", zoo_vgg16_bn, ZOO_IMAGE, 3, 224, 1000,
      false },
    { "vit_small_patch16_224", "timm's ViT-S/16", zoo_vit_small, ZOO_IMAGE, 3, 224, 1000, false },
    { "transformer_encoder", "pre-norm Transformer encoder on embedded tokens", zoo_transformer,
      ZOO_TOKENS, 512, 128, 2, false },
    { "unet", "diffusion U-Net with time embedding and attention", zoo_unet, ZOO_IMAGE_AND_TIME, 3,
      64, 0, false },
    { "unet_small", "the same, but smaller, for CPUs", zoo_unet_small, ZOO_IMAGE_AND_TIME, 3, 32, 0,
      false },
    { "segment_unet", "small U-Net that segments: a class for every pixel", zoo_segment_unet,
      ZOO_IMAGE, 3, 256, 3, false },
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
    if (o.batch < 0 || o.channels < 0 || o.height < 0 || o.width < 0 || o.classes < 0)
        return err_set(err, ERR_USAGE, "%s: batch, channels, size and classes must be positive",
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
    if (!graph_ok(graph, err)) {
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
