/* agreement.c: see agreement.h. The pixels of the truth are sorted by label; for each of its nuclei
 * the overlaps with the found ones are counted in an array that is cleared again afterwards. */
#include "nuclei/agreement.h"

#include <math.h>
#include <stdlib.h>

struct comparison {
    const struct nuclei_labels *truth, *found;
    int64_t *truth_px, *found_px; /* [n + 1]: pixels of each label */
    int64_t *starts;              /* [n + 2]: of the truth's labels in `partners` */
    int32_t *partners;            /* the found label under each pixel of the truth, by label */
    int64_t *shared;              /* [n + 1]: of the current nucleus with each found one */
    bool *chosen;                 /* [n + 1]: found ones that are in a pair of AJI */
};

static bool make_room(struct comparison *c, struct err *err)
{
    size_t truth = (size_t)c->truth->n + 2, found = (size_t)c->found->n + 1;
    c->truth_px = calloc(truth, sizeof *c->truth_px);
    c->found_px = calloc(found, sizeof *c->found_px);
    c->starts = calloc(truth, sizeof *c->starts);
    c->partners = malloc((size_t)(c->truth->width * c->truth->height + 1) * sizeof *c->partners);
    c->shared = calloc(found, sizeof *c->shared);
    c->chosen = calloc(found, sizeof *c->chosen);
    return (c->truth_px && c->found_px && c->starts && c->partners && c->shared && c->chosen) ||
           err_memory(err, "a comparison of nuclei");
}

static void comparison_free(struct comparison *c)
{
    free(c->truth_px);
    free(c->found_px);
    free(c->starts);
    free(c->partners);
    free(c->shared);
    free(c->chosen);
}

static void sort_partners(struct comparison *c)
{
    int64_t all = c->truth->width * c->truth->height;
    for (int64_t i = 0; i < all; i++) {
        c->truth_px[c->truth->labels[i]]++;
        c->found_px[c->found->labels[i]]++;
    }
    for (int64_t k = 1; k <= c->truth->n; k++)
        c->starts[k + 1] = c->starts[k] + c->truth_px[k];
    for (int64_t i = 0; i < all; i++)
        if (c->truth->labels[i])
            c->partners[c->starts[c->truth->labels[i]]++] = c->found->labels[i];
    for (int64_t k = 1; k <= c->truth->n; k++) /* each has moved to its end */
        c->starts[k] -= c->truth_px[k];
}

/* The found nucleus with the highest IoU, of equals the first met; 0 if none overlaps. *shared,
 * *joint: px of the intersection and of the union. */
static int32_t best_partner(struct comparison *c, int32_t nucleus, int64_t *shared, int64_t *joint)
{
    const int32_t *partners = c->partners + c->starts[nucleus];
    int64_t n = c->truth_px[nucleus];
    int32_t best = 0;
    double best_iou = 0;
    for (int64_t i = 0; i < n; i++)
        c->shared[partners[i]]++;
    for (int64_t i = 0; i < n; i++) {
        int32_t partner = partners[i];
        int64_t both = c->shared[partner], either = n + c->found_px[partner] - both;
        double iou = (double)both / (double)either;
        if (partner && iou > best_iou)
            best = partner, best_iou = iou, *shared = both, *joint = either;
    }
    for (int64_t i = 0; i < n; i++)
        c->shared[partners[i]] = 0;
    return best;
}

static void add_up(struct comparison *c, struct nuclei_agreement *sum)
{
    for (int32_t k = 1; k <= c->truth->n; k++) {
        int64_t shared = 0, joint = 0;
        if (!c->truth_px[k])
            continue;
        sum->n_truth++;
        int32_t partner = best_partner(c, k, &shared, &joint);
        if (!partner) {
            sum->unions += (double)c->truth_px[k];
            continue;
        }
        c->chosen[partner] = true;
        sum->intersections += (double)shared;
        sum->unions += (double)joint;
        if (2 * shared > joint) {
            sum->n_matched++;
            sum->matched_iou += (double)shared / (double)joint;
        }
    }
    for (int32_t k = 1; k <= c->found->n; k++) {
        sum->n_found += c->found_px[k] > 0;
        if (!c->chosen[k])
            sum->unions += (double)c->found_px[k];
    }
}

bool nuclei_agreement_add(const struct nuclei_labels *truth, const struct nuclei_labels *found,
                          struct nuclei_agreement *sum, struct err *err)
{
    if (truth->width != found->width || truth->height != found->height)
        return err_set(err, ERR_USAGE,
                       "labels of %lld x %lld px cannot be compared with labels of %lld x %lld px",
                       (long long)found->width, (long long)found->height, (long long)truth->width,
                       (long long)truth->height);
    struct comparison c = { .truth = truth, .found = found };
    bool ok = make_room(&c, err);
    if (ok) {
        sort_partners(&c);
        add_up(&c, sum);
    }
    comparison_free(&c);
    return ok;
}

double nuclei_f1(const struct nuclei_agreement *a)
{
    int64_t all = a->n_truth + a->n_found;
    return all ? 2 * (double)a->n_matched / (double)all : NAN;
}

double nuclei_aji(const struct nuclei_agreement *a)
{
    return a->unions > 0 ? a->intersections / a->unions : NAN;
}

double nuclei_pq(const struct nuclei_agreement *a)
{
    int64_t all = a->n_truth + a->n_found;
    return all ? 2 * a->matched_iou / (double)all : NAN;
}
