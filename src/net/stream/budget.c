/* budget.c: see budget.h. Candidates are asked for in the order of how fast they are, so that
 * mostly one question suffices; all of them only to say what the least limit is. */
#include "net/stream/budget.h"

#include <string.h>
#include "base/room.h"
#include "net/stream/records.h"

#define MB 1000000

/* Sides of tiles, the fastest first. */
static const int64_t sides_px[] = { 1024, 1536, 2048, 768, 512, 3072, 4096,
                                    384,  256,  192,  128, 96,  64 };
#define N_SIDES (sizeof sides_px / sizeof *sides_px)

void budget_of_process(int64_t limit_mb, size_t coming, struct plan_stream *stream)
{
    size_t limit = (size_t)limit_mb * MB;
    stream->limit = limit;
    stream->besides = room_resident() + coming;
    stream->budget = limit_mb == 0 ? 0 : limit > stream->besides ? limit - stream->besides : 1;
}

static struct records_options records_of(const struct budget_options *options,
                                         const struct budget_need *need)
{
    return (struct records_options){ .n = need->n,
                                     .bytes = need->records,
                                     .folder = options->stream->spill,
                                     .bf16 = options->stream->bf16 };
}

struct question {
    size_t least;   /* bytes with which tiles of this side would fit */
    size_t most;    /* bytes with which nothing would be spilled */
    size_t besides; /* bytes of all but the records */
};

static bool ask(const struct budget_options *options, int64_t tile_px, struct question *out,
                struct err *err)
{
    struct budget_need need;
    if (!options->ask(options->arg, tile_px, &need, err))
        return false;
    struct records_options records = records_of(options, &need);
    out->besides = need.bytes;
    out->least = need.bytes + records_least(&records);
    records.folder = NULL;
    out->most = need.bytes + records_least(&records);
    return true;
}

/* Does it fit? Then it is the choice. */
static bool take(const struct budget_options *options, int64_t tile_px,
                 const struct question *question, struct budget_choice *out)
{
    size_t budget = options->stream->budget;
    bool spills = budget > 0 && question->most > budget;
    if (budget > 0 && question->least > budget)
        return false;
    *out = (struct budget_choice){ .tile_px = tile_px,
                                   .records = spills ? budget - question->besides : 0,
                                   .bytes = spills ? budget : question->most };
    return true;
}

/* A side, as a multiple of the step; 0: none, since the side before it does the same. */
static int64_t candidate(const struct budget_options *options, size_t i)
{
    int64_t step = options->step, side = sides_px[i] / step * step;
    int64_t longest = options->height > options->width ? options->height : options->width;
    int64_t whole = (longest + step - 1) / step * step;
    if (side == 0) /* the least there is */
        side = i + 1 == N_SIDES ? step : 0;
    return side <= whole ? side : i == 0 ? whole : 0;
}

static bool refuse(const struct budget_options *options, size_t least, int64_t tile_px,
                   struct err *err)
{
    const struct plan_stream *stream = options->stream;
    size_t limit = stream->limit ? stream->limit : stream->budget + stream->besides;
    char with[64] = "";
    if (stream->tile_px)
        snprintf(with, sizeof with, " with tiles of %lld px", (long long)tile_px);
    return err_set(err, ERR_MEMORY,
                   "%s at %lld x %lld px%s needs at least %zu MB, but the limit is %zu MB; raise "
                   "it%s%s",
                   options->name, (long long)options->width, (long long)options->height, with,
                   (least + stream->besides) / MB + 1, limit / MB,
                   stream->tile_px ? ", or leave the side of tiles to be chosen" : "",
                   stream->spill ? "" : ", or choose a folder for strips (train.spill, --spill)");
}

static bool choose(const struct budget_options *options, struct budget_choice *out, struct err *err)
{
    size_t least = SIZE_MAX;
    int64_t too_large = INT64_MAX;
    for (size_t i = 0; i < N_SIDES; i++) {
        int64_t tile_px = candidate(options, i);
        struct question question;
        if (tile_px == 0 || tile_px >= too_large)
            continue;
        if (!ask(options, tile_px, &question, err))
            return false;
        if (take(options, tile_px, &question, out))
            return true;
        least = question.least < least ? question.least : least;
        /* the last tile may be nearly twice as large as the others. Without a folder, larger tiles
         * have fewer strips, so that they may need less in all */
        if (options->stream->spill && 2 * tile_px < too_large)
            too_large = 2 * tile_px;
    }
    return refuse(options, least, 0, err);
}

bool budget_choose(const struct budget_options *options, struct budget_choice *out, struct err *err)
{
    int64_t step = options->step, asked = options->stream->tile_px / step * step;
    struct question question;
    if (options->stream->tile_px == 0)
        return choose(options, out, err);
    asked = asked > 0 ? asked : step;
    if (!ask(options, asked, &question, err))
        return false;
    return take(options, asked, &question, out) || refuse(options, question.least, asked, err);
}
