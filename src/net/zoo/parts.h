/* parts.h: layers shared by the families, and the build functions listed in the table in zoo.c.
 * Options passed to a build function are complete: no zeros. */
#ifndef NET_ZOO_PARTS_H
#define NET_ZOO_PARTS_H
#include "net/zoo/zoo.h"

struct zoo_name {
    char text[96];
};
/* A name from a format, usable within the expression: zoo_name("%s.conv%d", prefix, 1).text */
struct zoo_name zoo_name(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "input" [N, channels, height, width] */
value_id zoo_image(struct graph *graph, const struct zoo_options *options);

/* Sets the initial value of input `index` (1: weight, 2: bias) of every node of a kind. */
void zoo_init(struct graph *graph, enum op_kind kind, int index, struct init init);

/* Makes the graph fail, unless it has failed: what a network needs of its options. */
void zoo_refuse(struct graph *graph, const char *fact);

/* A window of height x width that keeps the size of an image (odd extents). */
struct conv_attr zoo_same(int64_t height, int64_t width);

/* Inception's unit: prefix.conv without bias, prefix.bn (epsilon 1e-3), ReLU. In a network whose
 * name ends in "nobn", prefix.conv has a bias instead of the norm. */
value_id zoo_conv_unit(struct graph *graph, value_id x, const char *prefix, int64_t channels,
                       struct conv_attr attr);
/* One unit of a branch; height 0 ends the branch. */
struct zoo_step {
    int64_t channels, height, width;
    int64_t stride; /* 1 keeps the size; 2, and 0 for a stride of 1, are without padding, square */
};
/* Units "block.branchI.0", ".1", ..; a branch of a single step has no number when `alone`. */
value_id zoo_branch(struct graph *graph, value_id x, const char *block, int index, bool alone,
                    const struct zoo_step *steps);
/* A mean over 3x3 that leaves out the padding, then a 1x1 unit. */
value_id zoo_pooled_branch(struct graph *graph, value_id x, const char *prefix, int64_t channels);
/* The first layers of Inception v3 and its successors, under these names: three units, a max pool,
 * two units, a max pool. */
value_id zoo_inception_stem(struct graph *graph, value_id x, const char *const names[7]);
/* The end of a classifier of features x [N, C]: the linear layer `name`, the output "logits"; or,
 * for options->features, x itself, the output "embedding". */
value_id zoo_scores(struct graph *graph, value_id x, const char *name,
                    const struct zoo_options *options);
/* The end of a ResNet: "avgpool", then zoo_scores. */
void zoo_classifier(struct graph *graph, value_id x, const char *name,
                    const struct zoo_options *options);

/* x [N, T, width], mask [N, T]: 0 for padding -> the mean of the others, [N, width] */
value_id zoo_mean_of_seen(struct graph *graph, value_id x, value_id mask);
/* The layers of a network of texts in bert.c, on x [N, T, width]; mask as above; depth 0: all. */
value_id zoo_bert_encoder(struct graph *graph, const char *name, value_id x, value_id mask,
                          int64_t depth);

typedef void zoo_build_function(struct graph *graph, const struct zoo_options *options);
zoo_build_function zoo_resnet18, zoo_resnet34, zoo_resnet50, zoo_resnet101, zoo_resnet152;
zoo_build_function zoo_resnet110_v2;
zoo_build_function zoo_googlenet, zoo_inception_v3, zoo_inception_v4;
zoo_build_function zoo_inception_resnet_v2;
zoo_build_function zoo_densenet121, zoo_densenet161;
zoo_build_function zoo_vgg16, zoo_vgg16_bn, zoo_vgg16mod;
zoo_build_function zoo_preactresnet34, zoo_convnext, zoo_efficientnet, zoo_swin;
zoo_build_function zoo_scan_tiny, zoo_scan_small, zoo_scan_base, zoo_scan_wide;
zoo_build_function zoo_unet, zoo_unet_tiny, zoo_unet_small, zoo_unet_large;
zoo_build_function zoo_segment_unet;
zoo_build_function zoo_autoencoder_4, zoo_autoencoder_8;
zoo_build_function zoo_vit, zoo_transformer;
zoo_build_function zoo_bert, zoo_t5, zoo_audio;
#endif
