/* store_write.c: writing of a store (store.h). HDF5 writes all but the pixels and reports their
 * offsets; then the file is closed and the pixels are written there directly (direct.h). */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "patch/direct.h"
#include "patch/layout.h"
#include "patch/store_facts.h"

struct store_writer {
    struct file_out out;
    struct layout_writer layout;
    struct direct *direct;
    int64_t unit_bytes, batch_units;
};

static bool write_metadata(struct store_writer *writer, const struct layout_ops *layout,
                           struct err *err)
{
    struct layout_writer *inner = &writer->layout;
    inner->file = h5_create(writer->out.handle);
    if (inner->file < 0)
        return h5_fail(err, writer->out.path, "create");
    bool ok = facts_put(inner->file, inner->request->layout, inner->request->facts) &&
              layout->create(inner);
    if (!ok)
        h5_fail(err, writer->out.path, "write");
    if (H5Fclose(inner->file) < 0 && ok)
        ok = h5_fail(err, writer->out.path, "write");
    return ok;
}

static bool create(struct store_writer *writer, const struct layout_ops *layout, struct err *err)
{
    struct layout_writer *inner = &writer->layout;
    if (!layout->list_units(inner, err))
        return false;
    inner->offsets = malloc((size_t)(inner->units.n + 1) * sizeof *inner->offsets);
    if (!inner->offsets)
        return err_memory(err, writer->out.path);
    writer->unit_bytes = layout_unit_bytes(inner->units.size);
    writer->batch_units = direct_batch_pieces(inner->request->batch_bytes, writer->unit_bytes);
    int64_t at_least = writer->unit_bytes + (1 << 14);
    return write_metadata(writer, layout, err) &&
           direct_open(writer->out.handle, writer->out.path,
                       inner->request->batch_bytes > at_least ? inner->request->batch_bytes
                                                              : at_least,
                       &writer->direct, err);
}

bool store_create(const char *path, const struct store_request *request, struct store_writer **out,
                  struct err *err)
{
    struct store_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return err_memory(err, path);
    if (!file_out_reserve(&writer->out, path, err)) {
        free(writer);
        return false;
    }
    writer->layout.request = request;
    writer->layout.name = writer->out.path;
    const char *names = request->facts->class_names;
    struct h5_voice voice;
    h5_quiet(&voice);
    bool ok = class_names_parse(names ? names : "", path, &writer->layout.classes, err) &&
              create(writer, layouts[request->layout], err);
    h5_loud(&voice);
    if (!ok) {
        store_discard(writer);
        return false;
    }
    *out = writer;
    return true;
}

const struct units *store_units(const struct store_writer *writer)
{
    return &writer->layout.units;
}

int64_t store_batch_units(const struct store_writer *writer)
{
    return writer->batch_units;
}

uint8_t *store_place(struct store_writer *writer, int64_t i)
{
    return direct_place(writer->direct, writer->layout.offsets[i], writer->unit_bytes);
}

bool store_flush(struct store_writer *writer, struct err *err)
{
    return direct_submit(writer->direct, err);
}

bool store_commit(struct store_writer *writer, struct err *err)
{
    bool ok = direct_finish(writer->direct, err);
    writer->direct = NULL;
    ok = ok && file_out_commit(&writer->out, err);
    store_discard(writer);
    return ok;
}

void store_discard(struct store_writer *writer)
{
    if (!writer)
        return;
    direct_close(writer->direct);
    file_out_discard(&writer->out);
    class_names_free(&writer->layout.classes);
    units_free(&writer->layout.units);
    free(writer->layout.offsets);
    free(writer);
}
