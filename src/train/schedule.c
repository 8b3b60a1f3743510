/* schedule.c: see schedule.h. Every kind is a falling rate times the factor of the warm-up. */
#include "train/schedule.h"

#include <math.h>

#define WARMUP_BEGIN 0.01

const char *const schedule_names[] = { "constant", "step", "cosine", "plateau", NULL };

void schedule_begin(struct schedule_state *state)
{
    *state = (struct schedule_state){ .best_epoch = -1 };
}

static double cosine(const struct schedule_options *options, double epoch)
{
    double length = options->epochs - options->warmup_epochs;
    double done = length > 0 ? (epoch - options->warmup_epochs) / length : 1;
    done = fmin(fmax(done, 0), 1);
    return options->min_learning_rate + (options->learning_rate - options->min_learning_rate) *
                                            (1 + cos(3.14159265358979323846 * done)) / 2;
}

/* learning_rate * factor^times, but not below the minimum (nor above where it began). */
static double reduced(const struct schedule_options *options, double times)
{
    double rate = options->learning_rate * pow(options->factor, times);
    return fmax(rate, fmin(options->min_learning_rate, options->learning_rate));
}

double schedule_rate(const struct schedule_options *options, const struct schedule_state *state,
                     double epoch)
{
    double rate = options->learning_rate, warm = 1;
    if (options->kind == SCHEDULE_STEP && options->step_epochs > 0)
        rate = reduced(options, floor(epoch / options->step_epochs));
    else if (options->kind == SCHEDULE_COSINE)
        rate = cosine(options, epoch);
    else if (options->kind == SCHEDULE_PLATEAU)
        rate = reduced(options, (double)state->reductions);
    if (epoch < options->warmup_epochs)
        warm = WARMUP_BEGIN + (1 - WARMUP_BEGIN) * epoch / options->warmup_epochs;
    return rate * warm;
}

struct schedule_verdict schedule_judge(const struct schedule_options *options,
                                       struct schedule_state *state, int64_t epoch, double value)
{
    struct schedule_verdict verdict = { 0 };
    verdict.best =
        state->best_epoch < 0 ? !isnan(value) : value > state->best + options->min_improvement;
    if (verdict.best) {
        state->best = value;
        state->best_epoch = epoch;
        state->epochs_flat = state->epochs_no_better = 0;
        return verdict;
    }
    state->epochs_flat++;
    state->epochs_no_better++;
    /* As PyTorch counts: `patience` epochs are tolerated, the one after them is too many. */
    if (options->kind == SCHEDULE_PLATEAU && state->epochs_flat > options->patience) {
        verdict.stop = reduced(options, (double)state->reductions) <= options->min_learning_rate;
        verdict.reduce = !verdict.stop;
        state->reductions += verdict.reduce;
        state->epochs_flat = 0;
    }
    if (options->stop_patience > 0 && state->epochs_no_better > options->stop_patience)
        verdict.stop = true;
    return verdict;
}
