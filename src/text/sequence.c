/* sequence.c: see sequence.h. */
#include "text/sequence.h"
#include "text/tokenizer_parts.h"

const char *const sequence_rule_names[] = { "truncate", "head_tail", "refuse", NULL };

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

/* The ids of a text, without those around it. */
static bool fill(const struct sequence *s, const struct token_ids *body, float *ids, float *mask,
                 struct err *err)
{
    const struct tokenizer *t = s->tokenizer;
    int64_t room = room_of(s), n = body->n < room ? body->n : room, tail = 0;
    int32_t padding = tokenizer_id(t, "[PAD]");
    if (body->n == 0)
        return err_set(err, ERR_FORMAT, "the text has no token; fill it in, or remove the line");
    if (body->n > room && s->rule == SEQUENCE_REFUSE)
        return err_set(err, ERR_FORMAT,
                       "the text has %lld tokens, more than the %lld that fit; raise "
                       "data.max_tokens, or use data.long: truncate or head_tail",
                       (long long)body->n, (long long)room);
    if (body->n > room && s->rule == SEQUENCE_HEAD_TAIL)
        tail = room / 2;
    float *end = put(ids, t->front, t->n_front);
    end = put(end, body->ids, n - tail);
    end = put(end, body->ids + body->n - tail, tail);
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
    bool ok =
        tokenizer_encode(s->tokenizer, text, false, &body, err) && fill(s, &body, ids, mask, err);
    token_ids_free(&body);
    return ok;
}
