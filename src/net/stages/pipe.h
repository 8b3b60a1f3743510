/* pipe.h: the parts of a pipeline (pipeline.h): sets of activations, messages, and the works that
 * use them. Internal to src/net/stages. */
#ifndef NET_STAGES_PIPE_H
#define NET_STAGES_PIPE_H
#include "net/stages/pipeline.h"

/* Memory for a message or an input; used again by others of its size when it is free. */
struct packet {
    float *data;
    size_t bytes;
    int users; /* 0: free */
};

/* A started send. */
struct flight {
    const struct plan_peers *peers;
    int64_t handle;
    struct packet *packet;
    enum pipeline_channel channel;
    int64_t group; /* counts the works that sent in this channel */
};

/* What is received for one micro-batch at the stage that this rank has for it. */
struct arrival {
    struct packet *packet;
    const struct plan_peers *peers;
    int64_t handle;
    bool flying;
};

/* A stage that this rank has. Edges are indices into stages->edges, in order. */
struct pipe_stage {
    int stage;
    const struct graph *graph;
    float *gradients;
    int *in, *out; /* edges that end, that begin here */
    int n_in, n_out;
    size_t input_bytes; /* of all inputs */
    int last_work;      /* the last work of this rank that is the stage's */
};

/* A micro-batch on its way: from its forward pass, or from when its inputs are received, until
 * nothing of it is kept. */
struct pipe_micro {
    int held;               /* which stage of this rank */
    struct packet **inputs; /* [inputs of the stage graph] */
    struct arrival *there;  /* [n_in]: activations */
    struct arrival *back;   /* [n_out]: gradients */
};

/* Memory for the activations of one micro-batch, with the plan of each stage that uses it. */
struct pipe_set {
    char *arena; /* NULL: the plan has its own */
    size_t bytes;
    struct plan *plans[2];
};

/* What is decided about a work before anything runs. */
struct pipe_work {
    int set;
    bool again; /* backward: the forward pass must be run again first */
};

struct pipeline {
    struct pipeline_options options;
    const struct work *works; /* of this rank */
    int n_works;
    struct pipe_work *plan_of; /* [n_works] */
    struct pipe_stage held[2];
    int n_held;
    struct pipe_set *sets;
    int n_sets;
    struct pipe_micro *micros; /* [micros] */
    struct packet **packets;
    int64_t n_packets, room_packets;
    struct flight *flights;
    int64_t n_flights, room_flights;
    int64_t groups[CHANNELS]; /* works that have sent in each */
    int posted[CHANNELS];     /* works up to this one have their receives started */
    size_t kept, most_kept, packet_bytes;
    struct pipeline_report report;
    bool failed;
    struct err failure; /* of a progress between steps of a plan */
};

static inline const struct stage_edge *pipe_edge(const struct pipeline *p, int edge)
{
    return &p->options.stages->edges[edge];
}

static inline const struct plan_peers *pipe_peers(const struct pipeline *p, int micro,
                                                  enum pipeline_channel channel)
{
    return p->options.peers[p->options.program->two_way ? micro % 2 : 0][channel];
}

/* --- pipe_sets.c --- */

/* Which set of activations each work of this rank uses, and which plans that takes. */
bool pipe_sets_new(struct pipeline *p, struct err *err);
void pipe_sets_free(struct pipeline *p);

/* --- pipe_messages.c --- */

/* A free packet of this size; *out has one user. */
bool pipe_take(struct pipeline *p, size_t bytes, struct packet **out, struct err *err);
void pipe_release(struct packet **packet); /* and forgets it; NULL-safe */

/* Starts the receives of the works up to i, and of the next one of each channel behind it. */
bool pipe_post(struct pipeline *p, int i, struct err *err);
/* Waits for what has been started for a micro-batch in this channel. */
bool pipe_await(struct pipeline *p, int micro, enum pipeline_channel channel, struct err *err);
/* Begins to send for a work: waits for sends of works further back, whose packets are then free. */
bool pipe_send_begin(struct pipeline *p, enum pipeline_channel channel, struct err *err);
/* Starts a send; the packet has a further user until it is done. */
bool pipe_send(struct pipeline *p, int micro, enum pipeline_channel channel, int to_stage,
               struct packet *packet, struct err *err);
/* Waits for all sends. */
bool pipe_send_end(struct pipeline *p, struct err *err);
/* Moves what is in flight; errors are kept in p->failure. */
void pipe_progress(void *pipeline);
/* After a failure: nothing is in flight any more. */
void pipe_abandon(struct pipeline *p);
void pipe_messages_free(struct pipeline *p);
#endif
