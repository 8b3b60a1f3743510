/* synthetic.h: patches that a model made say so: stores by their attribute "synthetic" (store.h),
 * PNGs by their comment, which starts with this and goes on with the same JSON. */
#ifndef PATCH_SYNTHETIC_H
#define PATCH_SYNTHETIC_H
#define SYNTHETIC_NOTE "synthetic patch: "
#endif
