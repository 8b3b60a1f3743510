/* resize_axis.h: how ONNX places the pixels of one side of a resized image. */
#ifndef NET_ONNX_RESIZE_AXIS_H
#define NET_ONNX_RESIZE_AXIS_H
#include <stdbool.h>
#include <stdint.h>

enum resize_coordinates {
    HALF_PIXEL,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL
};
enum resize_rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC };

struct resize_axis {
    int mode, coordinates, rounding; /* of the enums above */
    bool antialias;                  /* a wider window where pixels are lost */
    bool exclude_outside;            /* pixels beyond the border do not count */
    float cubic;                     /* the a of cubic interpolation */
    float scale;
    int64_t in, out;
};

/* The pixel of the input that output pixel i is, with RESIZE_NEAREST. */
int64_t resize_nearest(const struct resize_axis *axis, int64_t i);
/* The position of output pixel i in the input, in floats, as in ONNX Runtime. */
float resize_place(const struct resize_axis *axis, int64_t i);
/* weights [in]: how much every pixel of the input counts in output pixel i. */
void resize_weights(const struct resize_axis *axis, int64_t i, float *weights);
#endif
