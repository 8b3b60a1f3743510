/* stream.h: a streamed plan and its parts. Internal to net/stream. */
#ifndef NET_STREAM_STREAM_H
#define NET_STREAM_STREAM_H
#include "net/plan/execution.h"
#include "net/stream/ahead.h"
#include "net/stream/frontier.h"
#include "net/stream/records.h"
#include "net/stream/reduce.h"

/* Where an output of the graph is. */
struct stream_output {
    int end;         /* of the body: a map; -1: not a map */
    int tail;        /* output of the tail; -1: a map */
    float *map;      /* [C, H, W] without a sink */
    float *gradient; /* the same */
};

struct stream {
    struct plan plan;
    struct plan_options options;
    struct plan_stream settings;    /* options.stream */
    const struct plan_peers *bands; /* NULL: alone */
    struct body body;
    struct tiles tiles;
    struct plan_carry carry;
    struct frontier frontier;
    struct bands borders; /* of this band */

    /* [kinds of rows][kinds of columns]; they share one arena and one sum of gradients */
    struct graph **graphs;
    struct plan **plans;
    struct plan_weights *weights; /* of all kinds of tiles; NULL: transformed for every tile */
    bool weights_lent;            /* by the caller */
    char *arena;
    bool arena_lent; /* by the caller */
    size_t arena_bytes;
    size_t plans_bytes;   /* of the plans and their weights, estimated */
    size_t kernels_bytes; /* of kernels that stay if tiles of another size are chosen */
    size_t tail_bytes;    /* of the plan behind the poolings, estimated */
    size_t left_bytes;    /* of kernels for tiles of other sizes */

    struct records *records; /* NULL: no backward pass; then `record` is that of the current tile */
    float *record;
    size_t *record_bytes;  /* [tiles] */
    size_t records_memory; /* bytes that records may take; 0: no limit */
    float *image;          /* [C, H, W] without a source */
    struct ahead *ahead;
    struct ahead_part *parts; /* [tiles]: in the order of the current pass */

    struct reduction **reductions; /* [poolings of the body] */
    float **pooled;                /* [poolings]: scratch of the size of what each gives */
    float **spare;                 /* [ends]: room for a second gradient of a tile; NULL: none */
    int *readers;                  /* [ends]: gradients of the current tile so far */
    struct plan *tail;             /* NULL: none */
    struct stream_output *outputs; /* [graph->n_outputs] */

    float *gradients;
    bool gradients_lent;
    int64_t n_gradients;
    double *sums;        /* [n_gradients]: during a backward pass */
    int64_t unsummed_px; /* of tiles whose gradients are not yet in the sums */
    plan_gradient_hook hook;
    void *hook_arg;
    bool *needed;       /* [tiles]: of the current pass; NULL: all are. See skip.h */
    bool last_is_ready; /* the activations of the last tile are in the arena */
    int64_t tiles_still, tiles_left_out;
    size_t predicted_bytes;
};

static inline struct stream *stream_of(struct plan *plan)
{
    return (struct stream *)plan;
}

static inline int64_t stream_tiles(const struct stream *s)
{
    return s->tiles.axes[0].tiles * s->tiles.axes[1].tiles;
}

static inline bool stream_trains(const struct stream *s)
{
    return s->options.mode != PLAN_INFER;
}

static inline int stream_kinds(const struct stream *s)
{
    return s->tiles.axes[0].n_kinds * s->tiles.axes[1].n_kinds;
}

/* layout.c: the tiles, their graphs, and what all of it takes: nothing of it is allocated yet, but
 * for the gradients. Within the budget, where there is one. */
bool stream_choose_layout(struct stream *s, struct err *err);
void stream_forget_layout(struct stream *s);
struct plan_options stream_tile_options(const struct stream *s);
struct plan_options stream_tail_options(const struct stream *s);
/* Cells of a map in the tile that has most of them. */
int64_t stream_most_cells(const struct stream *s, int map);
/* Bytes of room for a second gradient of an end; 0: none meet there. */
size_t stream_spare_bytes(const struct stream *s, int end);
/* Bytes of the largest record. */
size_t stream_record_most(const struct stream *s);

/* pass.c: the two passes over all tiles. */
bool stream_forward(struct plan *plan, struct err *err);
bool stream_backward(struct plan *plan, struct err *err);
#endif
