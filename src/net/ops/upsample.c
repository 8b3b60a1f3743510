/* upsample.c: images enlarged (or shrunk) by nearest or bilinear interpolation. */
#include <math.h>
#include "net/ops/ops.h"

static const char *const modes[] = { "nearest", "bilinear", NULL };

#define ATTR_STRUCT struct upsample_attr
static const struct attr_field fields[] = {
    { .name = "mode",
      .type = ATTR_CHOICE,
      .offset = offsetof(struct upsample_attr, mode),
      .count = 1,
      .min = UPSAMPLE_NEAREST,
      .max = UPSAMPLE_BILINEAR,
      .choices = modes },
    FIELD(ATTR_DOUBLE, scale, 2, 0, 1e6),
    FIELD(ATTR_INT, size, 2, 0, ATTR_LIMIT),
    FIELD(ATTR_BOOL, align_corners, 1, 0, 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool upsample_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                           struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct upsample_attr *a = &attr->upsample;
    if (!shape_is_image(in[0], err))
        return false;
    *out = *in[0];
    for (int i = 0; i < 2; i++) {
        double extent =
            a->size[i] ? (double)a->size[i] : floor((double)out->dim[2 + i] * a->scale[i]);
        if (!(extent >= 1 && extent <= ATTR_LIMIT))
            return err_set(err, ERR_FORMAT, "the output would have an extent of %g px", extent);
        out->dim[2 + i] = (int64_t)extent;
    }
    return true;
}

const struct op op_upsample = {
    .kind = OP_UPSAMPLE,
    .name = "upsample",
    .onnx = "Resize",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = upsample_shape,
};
