/* runner_recordings.c: see runner_recordings.h. */
#include "train/runner_recordings.h"
#include "base/console.h"
#include "train/dataset_recordings.h"

/* All were read when the data set was opened. How many are cut? */
bool recordings_look(struct trainer *trainer, struct err *err)
{
    (void)err;
    const struct dataset_recordings *recordings = trainer->dataset.recordings;
    if (recordings->cut > 0 && trainer_leads(trainer))
        console_note(trainer->ctx->console,
                     "%lld of %lld recordings have more than %.2f s, of which the beginning is "
                     "taken (data.max_seconds)",
                     (long long)recordings->cut, (long long)trainer->dataset.n_samples,
                     frames_seconds(&recordings->rule));
    return true;
}

bool recordings_describe(struct trainer *trainer, struct err *err)
{
    (void)err;
    const struct train_config *given = trainer->config;
    const struct frames_rule *rule = &trainer->dataset.recordings->rule;
    const struct mel_options *mel = mel_options_of(rule->mel);
    trainer->prepare.audio = (struct model_audio){ .column = given->data.audio,
                                                   .label = given->data.label,
                                                   .id = given->data.id,
                                                   .sample_rate_hz = mel->rate,
                                                   .window_samples = mel->window,
                                                   .hop_samples = mel->hop,
                                                   .mels = mel->bands,
                                                   .max_frames = rule->frames,
                                                   .refuse = rule->refuse };
    return true;
}
