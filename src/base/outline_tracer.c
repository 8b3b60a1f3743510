/* outline_tracer.c: outlines row by row, see outline.h. Between two rows of pixels the corners are
 * passed from left to right; at each, the edges of the mask that meet there are connected. A line
 * runs with the mask on its right and has two loose ends until it closes to a ring. Where two
 * pixels touch only at a corner each line stays with its own pixel, so pieces are connected by
 * edges; a ring may then pass a corner twice, and is split in two there when its piece is done. */
#include "base/outline.h"

#include <math.h>
#include <stdlib.h>
#include "base/array.h"

enum { NONE = -1 };

/* Things of one size, identified by number; released numbers are reused. The first member of a
 * thing is an int32_t, which links the free ones. */
struct stock {
    char *things;
    size_t size;
    int32_t n, room, free;
};

struct corner {
    int32_t next; /* along the line, or NONE at its front */
    int32_t x, y;
    int32_t twin; /* where two lines touch: the other one's corner here; else NONE */
};

/* The front of a line grows forwards, its back backwards. */
struct loose_end {
    int32_t partner; /* the other end of the line */
    int32_t corner;
    bool front;
};

struct closed_ring {
    int32_t next; /* of the same piece, or NONE */
    int32_t corner;
};

struct part {       /* a piece, as far as it is known */
    int32_t parent; /* the part that it turned out to belong to, or itself */
    int32_t link;   /* in a list of parts that are no longer needed */
    int32_t last_row;
    struct outline_point first_px;
    int64_t n_px;
    double sum;
    float max;
    int32_t rings, last_ring; /* or NONE */
};

struct outline_tracer {
    int32_t width, y; /* y: rows seen */
    int64_t max_points;
    bool full;
    outline_take take;
    void *arg;
    struct stock corners, ends, rings, parts;
    int32_t *above,
        *here;        /* [width + 2]: parts of the row above and of this one, or NONE; from 1 */
    int32_t *hanging; /* [width + 1]: the loose end that hangs down at a corner's column */
    int32_t across;   /* the loose end that comes from the left */
    /* The piece that is handed over: */
    int32_t *path; /* corners */
    struct outline_point *points;
    struct outline_ring *out_rings;
    int64_t path_n, path_room, n_points, points_room, n_rings, rings_room;
};

static struct corner *corner_of(const struct outline_tracer *t, int32_t i)
{
    return (struct corner *)(void *)t->corners.things + i;
}

static struct loose_end *end_of(const struct outline_tracer *t, int32_t i)
{
    return (struct loose_end *)(void *)t->ends.things + i;
}

static struct closed_ring *ring_of(const struct outline_tracer *t, int32_t i)
{
    return (struct closed_ring *)(void *)t->rings.things + i;
}

static struct part *part_of(const struct outline_tracer *t, int32_t i)
{
    return (struct part *)(void *)t->parts.things + i;
}

static bool stock_get(struct stock *stock, int32_t *out, struct err *err)
{
    if (stock->free != NONE) {
        *out = stock->free;
        stock->free = *(int32_t *)(void *)(stock->things + (size_t)*out * stock->size);
        return true;
    }
    if (stock->n == stock->room) {
        int32_t room = stock->room ? stock->room / 2 * 3 : 1024;
        char *things =
            room > INT32_MAX / 2 ? NULL : realloc(stock->things, (size_t)room * stock->size);
        if (!things)
            return err_memory(err, "an outline");
        stock->things = things, stock->room = room;
    }
    *out = stock->n++;
    return true;
}

static void stock_give(struct stock *stock, int32_t i)
{
    *(int32_t *)(void *)(stock->things + (size_t)i * stock->size) = stock->free;
    stock->free = i;
}

/* ---- pieces ---- */

static int32_t root_of(const struct outline_tracer *t, int32_t part)
{
    while (part_of(t, part)->parent != part)
        part = part_of(t, part)->parent;
    return part;
}

static bool before(struct outline_point a, struct outline_point b)
{
    return a.y != b.y ? a.y < b.y : a.x < b.x;
}

/* Two parts turn out to be one; *merged lists those that are no longer needed. */
static int32_t unite(struct outline_tracer *t, int32_t a, int32_t b, int32_t *merged)
{
    a = root_of(t, a), b = root_of(t, b);
    if (a == b)
        return a;
    struct part *to = part_of(t, a), *from = part_of(t, b);
    to->first_px = before(from->first_px, to->first_px) ? from->first_px : to->first_px;
    to->n_px += from->n_px;
    to->sum += from->sum;
    to->max = fmaxf(to->max, from->max);
    if (from->rings != NONE) {
        ring_of(t, from->last_ring)->next = to->rings;
        to->last_ring = to->rings == NONE ? from->last_ring : to->last_ring;
        to->rings = from->rings;
    }
    to->last_row = t->y;
    from->parent = a;
    from->link = *merged;
    *merged = b;
    return a;
}

static bool new_part(struct outline_tracer *t, int32_t x, int32_t *out, struct err *err)
{
    if (!stock_get(&t->parts, out, err))
        return false;
    *part_of(t, *out) = (struct part){ .parent = *out,
                                       .link = NONE,
                                       .first_px = { x, t->y },
                                       .max = -INFINITY,
                                       .rings = NONE,
                                       .last_ring = NONE };
    return true;
}

/* Fills `here` with the parts of the new row; mask NULL is an empty row. */
static bool label_row(struct outline_tracer *t, const uint8_t *mask, const float *values,
                      struct err *err)
{
    int32_t merged = NONE, current = NONE;
    for (int32_t x = 0; x < t->width; x++) {
        if (!mask || !mask[x]) {
            t->here[x + 1] = current = NONE;
            continue;
        }
        int32_t up = t->above[x + 1];
        if (current == NONE && up == NONE && !new_part(t, x, &current, err))
            return false;
        if (current == NONE)
            current = root_of(t, up);
        else if (up != NONE && up != current)
            current = unite(t, up, current, &merged);
        struct part *part = part_of(t, current);
        part->last_row = t->y;
        part->n_px++;
        if (values) {
            part->sum += (double)values[x];
            part->max = values[x] > part->max ? values[x] : part->max;
        }
        t->here[x + 1] = current;
    }
    for (int32_t x = 1; x <= t->width && merged != NONE; x++) {
        t->here[x] = t->here[x] == NONE ? NONE : root_of(t, t->here[x]);
        t->above[x] = t->above[x] == NONE ? NONE : root_of(t, t->above[x]);
    }
    while (merged != NONE) {
        int32_t next = part_of(t, merged)->link;
        stock_give(&t->parts, merged);
        merged = next;
    }
    return true;
}

/* ---- lines ---- */

static bool new_corner(struct outline_tracer *t, int32_t x, int32_t *out, struct err *err)
{
    if (t->max_points > 0 && t->corners.free == NONE && t->corners.n >= t->max_points) {
        t->full = true;
        return err_set(err, ERR_MEMORY, "an outline has more than %lld corners",
                       (long long)t->max_points);
    }
    if (!stock_get(&t->corners, out, err))
        return false;
    *corner_of(t, *out) = (struct corner){ .next = NONE, .x = x, .y = t->y, .twin = NONE };
    return true;
}

/* A line goes around this corner. */
static bool turn(struct outline_tracer *t, int32_t end, int32_t x, int32_t *out, struct err *err)
{
    if (!new_corner(t, x, out, err))
        return false;
    struct loose_end *at = end_of(t, end);
    if (at->front)
        corner_of(t, at->corner)->next = *out;
    else
        corner_of(t, *out)->next = at->corner;
    at->corner = *out;
    return true;
}

/* A line begins here, to the right and downwards. */
static bool begin(struct outline_tracer *t, int32_t x, bool front_right, int32_t *out,
                  struct err *err)
{
    int32_t right, down;
    if (!new_corner(t, x, out, err) || !stock_get(&t->ends, &right, err) ||
        !stock_get(&t->ends, &down, err))
        return false;
    *end_of(t, right) = (struct loose_end){ down, *out, front_right };
    *end_of(t, down) = (struct loose_end){ right, *out, !front_right };
    t->across = right;
    t->hanging[x] = down;
    return true;
}

/* The line from the left and the one from above meet: one line, or a ring of `part`. */
static bool join(struct outline_tracer *t, int32_t x, int32_t part, int32_t *out, struct err *err)
{
    int32_t a = t->across, b = t->hanging[x];
    int32_t front = end_of(t, a)->front ? a : b, back = front == a ? b : a;
    if (!turn(t, front, x, out, err))
        return false;
    corner_of(t, *out)->next = end_of(t, back)->corner;
    if (end_of(t, front)->partner == back) {
        int32_t ring;
        if (!stock_get(&t->rings, &ring, err))
            return false;
        struct part *owner = part_of(t, part);
        *ring_of(t, ring) = (struct closed_ring){ .next = owner->rings, .corner = *out };
        owner->last_ring = owner->rings == NONE ? ring : owner->last_ring;
        owner->rings = ring;
    } else {
        int32_t far_back = end_of(t, front)->partner, far_front = end_of(t, back)->partner;
        end_of(t, far_back)->partner = far_front;
        end_of(t, far_front)->partner = far_back;
    }
    stock_give(&t->ends, front);
    stock_give(&t->ends, back);
    return true;
}

/* Connects the edges that meet at corner x between the two rows. */
static bool pass_corner(struct outline_tracer *t, int32_t x, struct err *err)
{
    int32_t nw = t->above[x], sw = t->here[x];
    bool in_nw = nw != NONE, in_ne = t->above[x + 1] != NONE;
    bool in_sw = sw != NONE, in_se = t->here[x + 1] != NONE;
    bool left = in_nw != in_sw, up = in_nw != in_ne;
    bool right = in_ne != in_se, down = in_sw != in_se;
    bool touch = left && up && right && down; /* two pixels, by this corner only */
    int32_t one = NONE, two = NONE;
    bool ok = true;
    if (touch && !in_nw) { /* above-right and below-left: both lines only turn */
        int32_t from_left = t->across;
        ok = turn(t, t->hanging[x], x, &one, err) && turn(t, from_left, x, &two, err);
        t->across = t->hanging[x];
        t->hanging[x] = from_left;
    } else if (left && up) {
        ok = join(t, x, in_nw ? nw : sw, &one, err) && (!touch || begin(t, x, in_se, &two, err));
    } else if (right && down) {
        ok = begin(t, x, in_se, &one, err);
    } else if (left && down) {
        ok = turn(t, t->across, x, &one, err);
        t->hanging[x] = t->across;
    } else if (up && right) {
        ok = turn(t, t->hanging[x], x, &one, err);
        t->across = t->hanging[x];
    }
    if (ok && touch) {
        corner_of(t, one)->twin = two;
        corner_of(t, two)->twin = one;
    }
    return ok;
}

/* ---- handing over ---- */

/* Twice the area; positive where the mask is inside (y grows downwards). */
static int64_t twice_area(const struct outline_point *points, int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0, j = n - 1; i < n; j = i++)
        sum += (int64_t)points[j].x * points[i].y - (int64_t)points[i].x * points[j].y;
    return sum;
}

/* Takes the end of the path, from `from` on, out of it as a ring. */
static bool cut_ring(struct outline_tracer *t, int64_t from, struct err *err)
{
    int64_t n = t->path_n - from, first = from;
    if (!array_grow(&t->points, &t->points_room, t->n_points + n, sizeof *t->points, "an outline",
                    err) ||
        !array_grow(&t->out_rings, &t->rings_room, t->n_rings + 1, sizeof *t->out_rings,
                    "an outline", err))
        return false;
    for (int64_t i = from; i < t->path_n; i++) {
        struct corner *at = corner_of(t, t->path[i]), *best = corner_of(t, t->path[first]);
        first = before((struct outline_point){ at->x, at->y },
                       (struct outline_point){ best->x, best->y })
                    ? i
                    : first;
        at->twin = NONE;
    }
    struct outline_point *to = t->points + t->n_points;
    for (int64_t i = 0; i < n; i++) {
        const struct corner *at = corner_of(t, t->path[from + (first - from + i) % n]);
        to[i] = (struct outline_point){ at->x, at->y };
    }
    t->out_rings[t->n_rings++] =
        (struct outline_ring){ .first = t->n_points, .n = n, .hole = twice_area(to, n) < 0 };
    t->n_points += n;
    t->path_n = from;
    return true;
}

/* Walks a ring. A corner that has a twin is marked with its position in the path, as -2 - position
 * in `twin`: if the twin then follows in the same ring, the part between them is a separate ring.
 * The twin may also belong to another ring, whose corners may have been reused for other positions
 * by now: hence the check of the coordinates. */
static bool flatten_ring(struct outline_tracer *t, int32_t start, struct err *err)
{
    int32_t i = start;
    t->path_n = 0;
    do {
        struct corner *at = corner_of(t, i);
        if (at->twin != NONE) {
            const struct corner *twin = corner_of(t, at->twin);
            bool met = twin->twin <= -2 && twin->x == at->x && twin->y == at->y;
            if (met && !cut_ring(t, -2 - twin->twin, err))
                return false;
            at->twin = (int32_t)(-2 - t->path_n);
        }
        if (!array_grow(&t->path, &t->path_room, t->path_n + 1, sizeof *t->path, "an outline", err))
            return false;
        t->path[t->path_n++] = i;
        i = at->next;
    } while (i != start);
    return cut_ring(t, 0, err);
}

static void give_ring(struct outline_tracer *t, int32_t ring)
{
    int32_t start = ring_of(t, ring)->corner, i = start;
    do {
        int32_t next = corner_of(t, i)->next;
        stock_give(&t->corners, i);
        i = next;
    } while (i != start);
    stock_give(&t->rings, ring);
}

static int outer_first(const void *a, const void *b)
{
    const struct outline_ring *left = a, *right = b;
    if (left->hole != right->hole)
        return left->hole ? 1 : -1;
    return left->first < right->first ? -1 : 1;
}

static bool hand_over(struct outline_tracer *t, const struct part *part, struct err *err)
{
    bool ok = true;
    t->n_points = t->n_rings = 0;
    for (int32_t ring = part->rings; ring != NONE;) {
        int32_t next = ring_of(t, ring)->next;
        ok = ok && flatten_ring(t, ring_of(t, ring)->corner, err);
        give_ring(t, ring);
        ring = next;
    }
    if (!ok)
        return false;
    qsort(t->out_rings, (size_t)t->n_rings, sizeof *t->out_rings, outer_first);
    struct outline_piece piece = { .first_px = part->first_px,
                                   .points = t->points,
                                   .rings = t->out_rings,
                                   .n_points = t->n_points,
                                   .n_rings = t->n_rings,
                                   .n_px = part->n_px,
                                   .value_sum = part->sum,
                                   .value_max = part->max };
    return t->take(t->arg, &piece, err);
}

/* Pieces of the row above that do not continue. */
static bool hand_over_done(struct outline_tracer *t, struct err *err)
{
    bool ok = true;
    int32_t gone = NONE;
    for (int32_t x = 1; x <= t->width && ok; x++) {
        struct part *part = t->above[x] == NONE ? NULL : part_of(t, t->above[x]);
        if (!part || part->last_row >= t->y)
            continue;
        part->last_row = INT32_MAX;
        part->link = gone;
        gone = t->above[x];
        ok = hand_over(t, part, err);
    }
    while (gone != NONE) {
        int32_t next = part_of(t, gone)->link;
        stock_give(&t->parts, gone);
        gone = next;
    }
    return ok;
}

bool outline_tracer_row(struct outline_tracer *t, const uint8_t *mask, const float *values,
                        struct err *err)
{
    if (t->y == INT32_MAX - 1)
        return err_set(err, ERR_FORMAT, "an outline cannot have more than 2^31 rows");
    if (!label_row(t, mask, values, err))
        return false;
    for (int32_t x = 0; x <= t->width; x++)
        if (!pass_corner(t, x, err))
            return false;
    if (!hand_over_done(t, err))
        return false;
    int32_t *swap = t->above;
    t->above = t->here, t->here = swap;
    t->y++;
    return true;
}

bool outline_tracer_end(struct outline_tracer *t, struct err *err)
{
    return outline_tracer_row(t, NULL, NULL, err);
}

bool outline_tracer_full(const struct outline_tracer *t)
{
    return t->full;
}

bool outline_tracer_new(int32_t width, int64_t max_points, outline_take take, void *arg,
                        struct outline_tracer **out, struct err *err)
{
    struct outline_tracer *t = calloc(1, sizeof *t);
    if (!t)
        return err_memory(err, "an outline");
    t->width = width, t->max_points = max_points, t->take = take, t->arg = arg;
    t->corners = (struct stock){ .size = sizeof(struct corner), .free = NONE };
    t->ends = (struct stock){ .size = sizeof(struct loose_end), .free = NONE };
    t->rings = (struct stock){ .size = sizeof(struct closed_ring), .free = NONE };
    t->parts = (struct stock){ .size = sizeof(struct part), .free = NONE };
    t->above = malloc(((size_t)width + 2) * sizeof *t->above);
    t->here = malloc(((size_t)width + 2) * sizeof *t->here);
    t->hanging = calloc((size_t)width + 1, sizeof *t->hanging);
    if (!t->above || !t->here || !t->hanging) {
        outline_tracer_free(t);
        return err_memory(err, "an outline");
    }
    for (int32_t x = 0; x < width + 2; x++)
        t->above[x] = t->here[x] = NONE;
    *out = t;
    return true;
}

void outline_tracer_free(struct outline_tracer *t)
{
    if (!t)
        return;
    free(t->corners.things), free(t->ends.things), free(t->rings.things), free(t->parts.things);
    free(t->above), free(t->here), free(t->hanging);
    free(t->path), free(t->points), free(t->out_rings);
    free(t);
}
