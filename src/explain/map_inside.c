/* map_inside.c: the share of each map of a subject that is inside outlined nuclei or areas (map.h,
 * inside.h). */
#include <math.h>
#include <stdlib.h>
#include "base/console.h"
#include "explain/inside.h"
#include "explain/map_work.h"

/* The part of the image that the network sees, pixel by pixel. */
static struct inside_window window_of(const struct subject *subject, const struct map_view *view)
{
    const struct map_frame *frame = &view->frame;
    bool placed = subject->downsample > 0 && subject->slide[0];
    double step = placed ? subject->downsample : 1;
    return (struct inside_window){
        .name = placed ? subject->slide : subject->name,
        .x_l0 = (placed ? (double)subject->x_l0 : 0) + step * (double)frame->left,
        .y_l0 = (placed ? (double)subject->y_l0 : 0) + step * (double)frame->top,
        .step_l0 = step,
        .width = frame->width,
        .height = frame->height,
    };
}

static bool measure(const struct map_run *run, const struct map_view *view, float *const *maps,
                    const uint8_t *mask, struct map_numbers *numbers, struct err *err)
{
    int64_t width = view->frame.width, height = view->frame.height;
    float *sized = malloc((size_t)(width * height) * sizeof *sized);
    if (!sized)
        return err_memory(err, "a map");
    for (int i = 0; i < run->n_columns; i++) {
        struct attribution map = { view->sized.height, view->sized.width, maps[i] };
        attribution_resize(&map, height, width, sized);
        numbers->inside[i] = belief_mass_inside(sized, mask, width * height);
    }
    free(sized);
    return true;
}

bool map_measure_inside(const struct map_run *run, const struct subject *subject,
                        const struct map_view *view, float *const *maps, const struct ctx *ctx,
                        struct map_numbers *numbers, struct err *err)
{
    for (int i = 0; i < run->n_columns; i++)
        numbers->inside[i] = (struct belief_inside){ NAN, NAN, NAN };
    if (!run->inside)
        return true;
    struct inside_window window = window_of(subject, view);
    uint8_t *mask = malloc((size_t)(window.width * window.height));
    struct err why = { 0 };
    if (!mask)
        return err_memory(err, "a mask");
    bool found = inside_mask(run->inside, &window, mask, &why), ok = found;
    if (found)
        ok = measure(run, view, maps, mask, numbers, err);
    else if (why.kind == ERR_MISSING)
        console_warn(ctx->console, "%s", why.text), ok = true;
    else
        *err = why;
    free(mask);
    return ok;
}
