/* store_facts.h: the facts of a store <-> attributes of the file's root; private to the store. */
#ifndef PATCH_STORE_FACTS_H
#define PATCH_STORE_FACTS_H
#include "patch/h5.h"
#include "patch/store.h"

/* On failure, HDF5 has the reason. */
bool facts_put(hid_t file, enum store_layout layout, const struct store_facts *facts);
/* What is absent stays "" or 0. The texts are the caller's; free with facts_free. */
bool facts_get(hid_t file, struct store_facts *out);
void facts_free(struct store_facts *facts);
#endif
