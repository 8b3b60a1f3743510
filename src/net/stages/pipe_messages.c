/* pipe_messages.c: the messages of a pipeline. Receives are started one work ahead in each channel,
 * sends are waited for two works later, so that neither side waits for the other's pace, and memory
 * for messages is bounded. Between two ranks the messages of a channel are those of their works in
 * order, and within a work those of the edges in order. */
#include <stdlib.h>
#include "base/array.h"
#include "base/clock.h"
#include "net/stages/pipe.h"

#define AHEAD 1   /* works of a channel whose receives are started before it is their turn */
#define SENDING 2 /* works of a channel whose sends may be under way */
#define ALIGNMENT ((size_t)64)

/* --- packets --- */

bool pipe_take(struct pipeline *p, size_t bytes, struct packet **out, struct err *err)
{
    for (int64_t i = 0; i < p->n_packets; i++)
        if (p->packets[i]->users == 0 && p->packets[i]->bytes == bytes) {
            *out = p->packets[i];
            (*out)->users = 1;
            return true;
        }
    size_t room = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    struct packet *packet = calloc(1, sizeof *packet);
    float *data = packet ? aligned_alloc(ALIGNMENT, room) : NULL;
    if (!data || !array_grow(&p->packets, &p->room_packets, p->n_packets + 1, sizeof *p->packets,
                             "messages", err)) {
        free(data), free(packet);
        return err_memory(err, "messages between stages");
    }
    *packet = (struct packet){ data, bytes, 1 };
    p->packets[p->n_packets++] = packet;
    p->packet_bytes += bytes;
    *out = packet;
    return true;
}

void pipe_release(struct packet **packet)
{
    if (*packet)
        (*packet)->users--;
    *packet = NULL;
}

/* --- receives --- */

static bool post_one(struct pipeline *p, struct arrival *arrival, int micro,
                     enum pipeline_channel channel, int from_stage, size_t bytes, struct err *err)
{
    if (!pipe_take(p, bytes, &arrival->packet, err))
        return false;
    arrival->peers = pipe_peers(p, micro, channel);
    int from = program_rank(p->options.program, from_stage, micro);
    arrival->flying = arrival->peers->start_receive(
        arrival->peers->arg, from, arrival->packet->data, bytes, &arrival->handle, err);
    return arrival->flying;
}

static bool post_work(struct pipeline *p, const struct work *work, enum pipeline_channel channel,
                      struct err *err)
{
    struct pipe_micro *micro = &p->micros[work->micro];
    const struct pipe_stage *held = &p->held[micro->held];
    bool forward = channel == CHANNEL_FORWARD, ok = true;
    int n = forward ? held->n_in : held->n_out;
    for (int k = 0; ok && k < n; k++) {
        const struct stage_edge *edge = pipe_edge(p, forward ? held->in[k] : held->out[k]);
        ok = post_one(p, forward ? &micro->there[k] : &micro->back[k], work->micro, channel,
                      forward ? edge->from : edge->to, edge->bytes, err);
    }
    return ok;
}

static bool post_channel(struct pipeline *p, int i, enum pipeline_channel channel, struct err *err)
{
    enum work_kind kind = channel == CHANNEL_FORWARD ? WORK_FORWARD : WORK_BACKWARD;
    int ahead = 0;
    for (int k = i + 1; k < p->posted[channel]; k++)
        ahead += p->works[k].kind == kind;
    while (p->posted[channel] < p->n_works && (p->posted[channel] <= i || ahead < AHEAD)) {
        const struct work *work = &p->works[p->posted[channel]];
        if (work->kind == kind) {
            if (!post_work(p, work, channel, err))
                return false;
            ahead += p->posted[channel] > i;
        }
        p->posted[channel]++;
    }
    return true;
}

bool pipe_post(struct pipeline *p, int i, struct err *err)
{
    return post_channel(p, i, CHANNEL_FORWARD, err) && post_channel(p, i, CHANNEL_BACKWARD, err);
}

static bool await_all(struct arrival *arrivals, int n, struct err *err)
{
    for (int i = 0; i < n; i++) {
        struct arrival *a = &arrivals[i];
        if (a->flying && !a->peers->finish(a->peers->arg, a->handle, err))
            return false;
        a->flying = false;
    }
    return true;
}

bool pipe_await(struct pipeline *p, int micro, enum pipeline_channel channel, struct err *err)
{
    struct pipe_micro *m = &p->micros[micro];
    const struct pipe_stage *held = &p->held[m->held];
    double start = clock_monotonic_s();
    bool ok = channel == CHANNEL_FORWARD ? await_all(m->there, held->n_in, err)
                                         : await_all(m->back, held->n_out, err);
    p->report.waiting_s += clock_monotonic_s() - start;
    return ok;
}

/* --- sends --- */

/* Waits for the sends of this channel up to a group. */
static bool land(struct pipeline *p, enum pipeline_channel channel, int64_t group, struct err *err)
{
    double start = clock_monotonic_s();
    int64_t left = 0;
    bool ok = true;
    for (int64_t i = 0; i < p->n_flights; i++) {
        struct flight flight = p->flights[i];
        bool now = ok && flight.channel == channel && flight.group <= group;
        ok = ok && (!now || flight.peers->finish(flight.peers->arg, flight.handle, err));
        if (now && ok)
            pipe_release(&flight.packet);
        else
            p->flights[left++] = flight;
    }
    p->n_flights = left;
    p->report.waiting_s += clock_monotonic_s() - start;
    return ok;
}

bool pipe_send_begin(struct pipeline *p, enum pipeline_channel channel, struct err *err)
{
    p->groups[channel]++;
    return land(p, channel, p->groups[channel] - SENDING, err);
}

bool pipe_send(struct pipeline *p, int micro, enum pipeline_channel channel, int to_stage,
               struct packet *packet, struct err *err)
{
    const struct plan_peers *peers = pipe_peers(p, micro, channel);
    int to = program_rank(p->options.program, to_stage, micro);
    if (!array_grow(&p->flights, &p->room_flights, p->n_flights + 1, sizeof *p->flights, "messages",
                    err))
        return false;
    struct flight flight = { peers, 0, packet, channel, p->groups[channel] };
    if (!peers->start_send(peers->arg, to, packet->data, packet->bytes, &flight.handle, err))
        return false;
    packet->users++;
    p->flights[p->n_flights++] = flight;
    p->report.sent_bytes += (int64_t)packet->bytes;
    return true;
}

bool pipe_send_end(struct pipeline *p, struct err *err)
{
    bool ok = true;
    for (int c = 0; c < CHANNELS; c++)
        ok = ok && land(p, (enum pipeline_channel)c, INT64_MAX, err);
    return ok;
}

/* --- progress, ends --- */

void pipe_progress(void *pipeline)
{
    struct pipeline *p = pipeline;
    for (int copy = 0; copy < 2; copy++)
        for (int c = 0; c < CHANNELS; c++) {
            const struct plan_peers *peers = p->options.peers[copy][c];
            if (peers && peers->size > 1 && p->failure.kind == ERR_NONE)
                peers->progress(peers->arg, &p->failure);
        }
    if (p->options.progress)
        p->options.progress(p->options.arg);
}

void pipe_abandon(struct pipeline *p)
{
    for (int copy = 0; copy < 2; copy++)
        for (int c = 0; c < CHANNELS; c++) {
            const struct plan_peers *peers = p->options.peers[copy][c];
            if (peers && peers->size > 1)
                peers->abandon(peers->arg);
        }
    p->n_flights = 0;
}

void pipe_messages_free(struct pipeline *p)
{
    for (int64_t i = 0; i < p->n_packets; i++) {
        free(p->packets[i]->data);
        free(p->packets[i]);
    }
    free(p->packets), free(p->flights);
}
