/* loader.h: batches ready for the network. Groups of stores are read by one thread (HDF5 is
 * not thread-safe: nothing else may use it between loader_begin and loader_end); decoding,
 * augmentation and normalisation run in `workers` threads, a few batches ahead. The contents of a
 * batch depend only on seed, epoch and its number, never on threads. Used by one thread. */
#ifndef TRAIN_LOADER_H
#define TRAIN_LOADER_H
#include "net/model/model_prepare.h"
#include "prepare/stain_need.h"
#include "train/batch.h"
#include "train/order.h"

struct loader_options {
    const struct dataset *dataset; /* must outlive the loader, like everything pointed to here */
    enum data_side side;
    bool train; /* shuffled, augmented, cropped at a random place, an incomplete batch at the end
                   dropped; else in order, prepared as in use, the last batch padded */
    bool balanced;
    double synthetic_share; /* as in order.h */
    int64_t batch, input_px, window_bytes;
    int workers;
    uint64_t seed;
    struct augment_options augment;     /* crop_px is set from input_px */
    const struct model_config *prepare; /* its steps turn a patch into input_px */
    const struct stain_need *stain;     /* NULL: stains are left as they are */
    int rank, ranks; /* of every `ranks` batches this loader gives number `rank` */
};

/* The tensors of a batch:
 *   image   float [batch, 3, input_px, input_px]; zeros where padded
 *   tokens, mask  float [batch, tokens]: instead of image, if the data set is one of texts
 *   frames, mask  float [batch, frames, bands], [batch, tokens]: the same of recordings
 *   label   int32 [batch]; LOSS_IGNORE where padded
 *   sample  int64 [batch]: ids; -1 where padded
 *   copy    int32 [batch]: 0, 1, .. where a sample comes more than once in an epoch (order.h)
 *   target  float [batch]; NaN where padded; only if the data set has targets
 *   labels  int32 [batch, input_px, input_px]: enum segment_class (pixel_classes.h); LOSS_IGNORE
 *           where padded; only if the data set has label images */

struct loader;

/* *out is the caller's; free with loader_free. */
bool loader_new(const struct loader_options *options, struct loader **out, struct err *err);
void loader_free(struct loader *loader); /* NULL-safe */

/* Batches per epoch, on each rank. */
int64_t loader_n_batches(const struct loader *loader);

/* Starts an epoch at batch `first`. */
bool loader_begin(struct loader *loader, uint64_t epoch, int64_t first, struct err *err);
/* The same on exactly these items in this order, which must stay until loader_end; the last batch
 * is padded. `epoch` is for augmentation. Ranks and balancing do not count. */
bool loader_begin_items(struct loader *loader, uint64_t epoch, const struct order_item *items,
                        int64_t n, struct err *err);
/* The next batch, valid until the next call. An error names the file. */
bool loader_next(struct loader *loader, struct batch *out, struct err *err);
/* Ends the epoch, wherever it is, and adds up the times. */
void loader_end(struct loader *loader);

/* Seconds that loader_next waited for a batch since loader_new. */
double loader_waited_s(const struct loader *loader);
#endif
