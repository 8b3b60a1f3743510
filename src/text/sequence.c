/* sequence.c: see sequence.h. */
#include "text/sequence.h"
#include "base/divide.h"
#include "text/tokenizer_parts.h"

const char *const sequence_rule_names[] = { "truncate", "head_tail", "refuse", "windows", NULL };

static int64_t room_of(const struct sequence *s)
{
    return s->tokens - s->tokenizer->n_front - s->tokenizer->n_back;
}

bool sequence_check(const struct sequence *s, struct err *err)
{
    return room_of(s) > 0 ||
           err_set(err, ERR_USAGE,
                   "%lld tokens leave no room between those that begin and end a text (%d); raise "
                   "the number of tokens",
                   (long long)s->tokens, s->tokenizer->n_front + s->tokenizer->n_back);
}

static float *put(float *to, const int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)ids[i];
    return to + n;
}

/* Tokens from the beginning of a window to that of the next. */
static int64_t stride_of(const struct sequence *s)
{
    int64_t room = room_of(s), stride = room - (int64_t)(s->overlap * (double)room);
    return stride < 1 ? 1 : stride;
}

int64_t sequence_count(const struct sequence *s, int64_t n)
{
    int64_t rest = n - room_of(s);
    return s->rule == SEQUENCE_WINDOWS && rest > 0 ? 1 + ceil_div(rest, stride_of(s)) : 1;
}

/* Which tokens of n are in a window: `head` from `first` on, then the last `tail`. */
struct excerpt {
    int64_t first, head, tail;
};

static struct excerpt excerpt_of(const struct sequence *s, int64_t n, int64_t window)
{
    int64_t room = room_of(s), first = window * stride_of(s);
    if (n <= room)
        return (struct excerpt){ 0, n, 0 };
    if (s->rule == SEQUENCE_HEAD_TAIL)
        return (struct excerpt){ 0, room - room / 2, room / 2 };
    if (s->rule != SEQUENCE_WINDOWS)
        first = 0;
    return (struct excerpt){ first < n - room ? first : n - room, room, 0 };
}

int64_t sequence_source(const struct sequence *s, int64_t n, int64_t window, int64_t place)
{
    struct excerpt kept = excerpt_of(s, n, window);
    int64_t i = place - s->tokenizer->n_front;
    if (i < 0 || i >= kept.head + kept.tail)
        return -1;
    return i < kept.head ? kept.first + i : n - kept.tail + i - kept.head;
}

bool sequence_fill_ids(const struct sequence *s, const struct token_ids *body, int64_t window,
                       float *ids, float *mask, struct err *err)
{
    const struct tokenizer *t = s->tokenizer;
    int64_t room = room_of(s);
    int32_t padding = tokenizer_id(t, "[PAD]");
    if (body->n == 0)
        return err_set(err, ERR_FORMAT, "the text has no token; fill it in, or remove the line");
    if (body->n > room && s->rule == SEQUENCE_REFUSE)
        return err_set(err, ERR_FORMAT,
                       "the text has %lld tokens, more than the %lld that fit; raise "
                       "data.max_tokens, or use data.long: truncate, head_tail or windows",
                       (long long)body->n, (long long)room);
    struct excerpt kept = excerpt_of(s, body->n, window);
    float *end = put(ids, t->front, t->n_front);
    end = put(end, body->ids + kept.first, kept.head);
    end = put(end, body->ids + body->n - kept.tail, kept.tail);
    end = put(end, t->back, t->n_back);
    for (int64_t i = 0; i < s->tokens; i++) {
        mask[i] = ids + i < end;
        if (ids + i >= end)
            ids[i] = padding < 0 ? 0 : (float)padding;
    }
    return true;
}

bool sequence_fill(const struct sequence *s, const char *text, float *ids, float *mask,
                   struct err *err)
{
    struct token_ids body = { 0 };
    bool ok = tokenizer_encode(s->tokenizer, text, false, &body, err) &&
              sequence_fill_ids(s, &body, 0, ids, mask, err);
    token_ids_free(&body);
    return ok;
}
