/* upsample.c: images enlarged (or shrunk) by nearest or bilinear interpolation. */
#include <math.h>
#include "net/ops/ops.h"
#include "net/ops/resampling.h"

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
        /* in floats, as ONNX Runtime has it: 10 px by 0.7, which is less than 0.7, are 7 px */
        double extent = a->size[i] ? (double)a->size[i]
                                   : floor((double)((float)out->dim[2 + i] * (float)a->scale[i]));
        if (!(extent >= 1 && extent <= ATTR_LIMIT))
            return err_set(err, ERR_FORMAT, "the output would have an extent of %g px", extent);
        out->dim[2 + i] = (int64_t)extent;
    }
    return true;
}

/* Output pixels for one of the input. */
static float scale_of(const struct upsample_attr *a, int i, int64_t in, int64_t out)
{
    return a->size[i] ? (float)out / (float)in : (float)a->scale[i];
}

/* Bilinear: input pixels for one step of the output. */
static double step_of(const struct upsample_attr *a, int i, int64_t in, int64_t out)
{
    if (a->align_corners)
        return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    return a->size[i] ? (double)in / (double)out : 1 / a->scale[i];
}

static void fill_tables(const struct node *node, struct resample *r)
{
    const struct upsample_attr *a = &node->attr.upsample;
    bool same = r->axis[0].in == r->axis[0].out && r->axis[1].in == r->axis[1].out;
    for (int i = 0; i < 2; i++) {
        struct resample_axis *axis = &r->axis[i];
        if (same || a->mode == UPSAMPLE_NEAREST) { /* the same size, whatever the scale: a copy */
            axis->far = NULL, axis->weight = NULL;
            resample_nearest_axis(axis, same ? 1 : scale_of(a, i, axis->in, axis->out));
        } else {
            resample_bilinear_axis(axis, step_of(a, i, axis->in, axis->out), a->align_corners);
        }
    }
}

static bool upsample_forward(struct plan_node *pn, struct err *err)
{
    return resampling_forward(pn, in_layout(pn, 0), fill_tables, err);
}

static bool upsample_backward(struct plan_node *pn, struct err *err)
{
    return resampling_backward(pn, fill_tables, err);
}

const struct op op_upsample = {
    .kind = OP_UPSAMPLE,
    .name = "upsample",
    .onnx = "Resize",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = upsample_shape,
    .forward = upsample_forward,
    .backward = upsample_backward,
};
