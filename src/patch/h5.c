/* h5.c: see h5.h. */
#include "patch/h5.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_RANK 8
#define PAGE 4096
#define ALIGN_FROM 65536
#define MAX_TEXT (1 << 20)

/* Of a failed system call HDF5 tells names, flags and addresses; what the system said is enough. */
static herr_t keep_innermost(unsigned n, const H5E_error2_t *entry, void *out)
{
    static const char mark[] = "error message = '";
    struct h5_voice *voice = out;
    if (n > 0 || !entry->desc)
        return 0;
    const char *said = strstr(entry->desc, mark);
    said = said ? said + sizeof mark - 1 : entry->desc;
    int length = (int)(said > entry->desc ? strcspn(said, "'") : strlen(said));
    snprintf(voice->reason, sizeof voice->reason, "%.*s", length, said);
    return 0;
}

/* Called by HDF5 when a call fails, before later calls forget why. */
static herr_t on_failure(hid_t stack, void *voice)
{
    return H5Ewalk2(stack, H5E_WALK_UPWARD, keep_innermost, voice);
}

void h5_quiet(struct h5_voice *voice)
{
    *voice = (struct h5_voice){ 0 };
    H5dont_atexit(); /* where a full disk kept it from closing a file, it would crash there */
    H5Eget_auto2(H5E_DEFAULT, &voice->print, &voice->data);
    H5Eset_auto2(H5E_DEFAULT, on_failure, voice);
}

void h5_loud(const struct h5_voice *voice)
{
    H5Eset_auto2(H5E_DEFAULT, voice->print, voice->data);
}

bool h5_fail(struct err *err, const char *path, const char *verb)
{
    H5E_auto2_t print = NULL;
    void *data = NULL;
    H5Eget_auto2(H5E_DEFAULT, &print, &data);
    const struct h5_voice *voice = print == on_failure ? data : NULL;
    return err_set(err, ERR_IO, "%s: cannot %s: %s", path, verb,
                   voice && voice->reason[0] ? voice->reason : "HDF5 gives no reason");
}

hid_t h5_create(const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
    if (access >= 0 && H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_alignment(access, ALIGN_FROM, PAGE) >= 0)
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    return file;
}

static bool put_attribute(hid_t object, const char *name, hid_t file_type, hid_t memory_type,
                          hid_t space, const void *value)
{
    hid_t attribute = H5Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attribute >= 0 && H5Awrite(attribute, memory_type, value) >= 0;
    if (attribute >= 0 && H5Aclose(attribute) < 0)
        ok = false;
    H5Sclose(space);
    return ok;
}

static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

bool h5_put_text(hid_t object, const char *name, const char *value)
{
    hid_t type = text_type();
    bool ok = put_attribute(object, name, type, type, H5Screate(H5S_SCALAR), &value);
    H5Tclose(type);
    return ok;
}

bool h5_put_int(hid_t object, const char *name, int64_t value)
{
    return put_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, H5Screate(H5S_SCALAR),
                         &value);
}

bool h5_put_ints(hid_t object, const char *name, const int64_t *values, hsize_t n)
{
    return put_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64,
                         H5Screate_simple(1, &n, NULL), values);
}

bool h5_put_real(hid_t object, const char *name, double value)
{
    return put_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, H5Screate(H5S_SCALAR),
                         &value);
}

bool h5_put_reals(hid_t object, const char *name, const double *values, hsize_t n)
{
    return put_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
                         H5Screate_simple(1, &n, NULL), values);
}

/* Reads numbers; the attribute must have exactly n of them and be of the type's class. */
static bool get_numbers(hid_t object, const char *name, hid_t memory_type, void *out, hsize_t n)
{
    if (H5Aexists(object, name) <= 0)
        return false;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    H5T_class_t class = H5Tget_class(type);
    bool ok = (class == H5T_INTEGER || class == H5T_FLOAT) &&
              H5Sget_simple_extent_npoints(space) == (hssize_t)n &&
              H5Aread(attribute, memory_type, out) >= 0;
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return ok;
}

bool h5_get_int(hid_t object, const char *name, int64_t *out)
{
    return get_numbers(object, name, H5T_NATIVE_INT64, out, 1);
}

bool h5_get_real(hid_t object, const char *name, double *out)
{
    return get_numbers(object, name, H5T_NATIVE_DOUBLE, out, 1);
}

bool h5_get_reals(hid_t object, const char *name, double *out, hsize_t n)
{
    return get_numbers(object, name, H5T_NATIVE_DOUBLE, out, n);
}

static char *read_text(hid_t attribute, hid_t type)
{
    if (H5Tis_variable_str(type) > 0) {
        char *theirs = NULL;
        hid_t ours = text_type();
        H5Tset_cset(ours, H5Tget_cset(type));
        bool ok = H5Aread(attribute, ours, &theirs) >= 0 && theirs;
        H5Tclose(ours);
        char *copy = ok ? strndup(theirs, MAX_TEXT) : NULL;
        H5free_memory(theirs);
        return copy;
    }
    size_t size = H5Tget_size(type);
    if (size == 0 || size > MAX_TEXT)
        return NULL;
    char *text = calloc(size + 1, 1);
    if (text && H5Aread(attribute, type, text) < 0) {
        free(text);
        return NULL;
    }
    return text;
}

bool h5_get_text(hid_t object, const char *name, char **out)
{
    if (H5Aexists(object, name) <= 0)
        return false;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    char *text = NULL;
    if (H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1)
        text = read_text(attribute, type);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    if (text)
        *out = text;
    return text != NULL;
}

static hid_t with_parents(void)
{
    hid_t link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    return link;
}

hid_t h5_group(hid_t parent, const char *name)
{
    hid_t link = with_parents();
    hid_t group = H5Gcreate2(parent, name, link, H5P_DEFAULT, H5P_DEFAULT);
    H5Pclose(link);
    return group;
}

hid_t h5_dataset(hid_t parent, const char *name, hid_t type, int rank, const hsize_t *dims)
{
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t link = with_parents();
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), dataset = H5I_INVALID_HID;
    if (space >= 0 && H5Pset_layout(create, H5D_CONTIGUOUS) >= 0 &&
        H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(create, H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_obj_track_times(create, false) >= 0)
        dataset = H5Dcreate2(parent, name, type, space, link, create, H5P_DEFAULT);
    H5Pclose(create);
    H5Pclose(link);
    if (space >= 0)
        H5Sclose(space);
    return dataset;
}

bool h5_put_data(hid_t parent, const char *name, hid_t file_type, hid_t memory_type, int rank,
                 const hsize_t *dims, const void *data)
{
    hid_t dataset = h5_dataset(parent, name, file_type, rank, dims);
    if (dataset < 0)
        return false;
    bool ok = H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    return H5Dclose(dataset) >= 0 && ok;
}

bool h5_has(hid_t file, const char *name)
{
    return H5Lexists(file, name, H5P_DEFAULT) > 0;
}

/* What a dataset says of itself. */
struct extent {
    const char *path, *name;
    int rank;
    hsize_t dims[MAX_RANK];
    hsize_t element, bytes; /* of one number; of all of them */
};

/* Of the filters of a chunk, those whose result is bounded by what they are given: deflate once,
 * and those that keep the size. Others believe sizes in the file, or need a plug-in. */
static bool check_filters(hid_t create, const struct extent *extent, struct err *err)
{
    int n = H5Pget_nfilters(create), deflates = 0;
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0;
        size_t n_values = 0;
        H5Z_filter_t filter =
            H5Pget_filter2(create, (unsigned)i, &flags, &n_values, NULL, 0, NULL, &config);
        deflates += filter == H5Z_FILTER_DEFLATE;
        if (deflates > 1 || (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
                             filter != H5Z_FILTER_FLETCHER32))
            return err_set(err, ERR_FORMAT,
                           "%s: '%s' uses an unsupported compression (HDF5 filter %d); rewrite it "
                           "with h5repack -f GZIP=4",
                           extent->path, extent->name, (int)filter);
    }
    return n >= 0 || h5_fail(err, extent->path, "read");
}

/* Bytes of memory that all chunks make; 0 if they do not cover the dataset. */
static hsize_t chunk_bytes(hid_t dataset, hid_t create, const struct extent *extent)
{
    hsize_t chunk[MAX_RANK] = { 0 }, bytes = extent->element, n = 1, there = 0;
    hid_t space = H5Dget_space(dataset);
    bool ok = space >= 0 && H5Dget_num_chunks(dataset, space, &there) >= 0 &&
              H5Pget_chunk(create, MAX_RANK, chunk) == extent->rank;
    if (space >= 0)
        H5Sclose(space);
    for (int i = 0; ok && i < extent->rank; i++)
        ok = chunk[i] > 0 && !__builtin_mul_overflow(n, 1 + (extent->dims[i] - 1) / chunk[i], &n) &&
             !__builtin_mul_overflow(bytes, chunk[i], &bytes);
    return ok && there == n && !__builtin_mul_overflow(bytes, n, &bytes) ? bytes : 0;
}

/* A file may claim more than it holds: a contiguous dataset must lie within the file; of a chunked
 * one every chunk must be there, of no more bytes than deflate can make of what is stored. */
static bool check_held(hid_t dataset, const struct extent *extent, struct err *err)
{
    struct stat status;
    hid_t create = H5Dget_create_plist(dataset);
    H5D_layout_t layout = create >= 0 ? H5Pget_layout(create) : H5D_LAYOUT_ERROR;
    hsize_t file = stat(extent->path, &status) == 0 ? (hsize_t)status.st_size : 0;
    hsize_t stored = H5Dget_storage_size(dataset), bytes = extent->bytes;
    bool known = true, held = bytes == 0;
    if (layout == H5D_CHUNKED && bytes > 0) {
        hsize_t made = chunk_bytes(dataset, create, extent);
        known = check_filters(create, extent, err);
        held = made > 0 && stored <= file && made / H5_MOST_GROWTH <= stored;
    } else if (layout == H5D_COMPACT) {
        held = stored >= bytes && stored <= file;
    } else if (layout == H5D_CONTIGUOUS && bytes > 0) {
        haddr_t offset = H5Dget_offset(dataset);
        held = offset != HADDR_UNDEF && file >= bytes && offset <= file - bytes;
    }
    if (create >= 0)
        H5Pclose(create);
    return known && (held || err_set(err, ERR_FORMAT, "%s: '%s' is incomplete; the file is damaged",
                                     extent->path, extent->name));
}

static bool check_open(hid_t dataset, struct extent *extent, const hsize_t *wanted, struct err *err)
{
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    H5T_class_t class = H5Tget_class(type);
    int found = H5Sget_simple_extent_ndims(space);
    bool shaped = found == extent->rank &&
                  H5Sget_simple_extent_dims(space, extent->dims, NULL) == extent->rank;
    extent->element = extent->bytes = H5Tget_size(type);
    H5Sclose(space);
    H5Tclose(type);
    if (class != H5T_INTEGER && class != H5T_FLOAT)
        return err_set(err, ERR_FORMAT, "%s: '%s' does not contain numbers", extent->path,
                       extent->name);
    if (!shaped)
        return err_set(err, ERR_FORMAT, "%s: '%s' has %d dimensions, not %d", extent->path,
                       extent->name, found, extent->rank);
    for (int i = 0; i < extent->rank; i++) {
        hsize_t n = extent->dims[i];
        if (wanted[i] && n != wanted[i])
            return err_set(err, ERR_FORMAT, "%s: dimension %d of '%s' is %llu, not %llu",
                           extent->path, i, extent->name, (unsigned long long)n,
                           (unsigned long long)wanted[i]);
        if (__builtin_mul_overflow(extent->bytes, n, &extent->bytes) || extent->bytes > INT64_MAX)
            return err_set(err, ERR_FORMAT, "%s: '%s' claims an impossible size", extent->path,
                           extent->name);
    }
    return check_held(dataset, extent, err);
}

bool h5_check(hid_t file, const char *path, const char *name, int rank, const hsize_t *wanted,
              hsize_t *dims, struct err *err)
{
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    if (dataset < 0)
        return err_set(err, ERR_FORMAT, "%s: has no dataset '%s'", path, name);
    struct extent extent = { .path = path, .name = name, .rank = rank };
    bool ok = check_open(dataset, &extent, wanted, err);
    H5Dclose(dataset);
    memcpy(dims, extent.dims, (size_t)rank * sizeof *dims);
    return ok;
}

bool h5_read(hid_t file, const char *path, const char *name, hid_t memory_type, void *out,
             struct err *err)
{
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    bool ok =
        dataset >= 0 && H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0;
    if (!ok)
        h5_fail(err, path, "read");
    if (dataset >= 0)
        H5Dclose(dataset);
    return ok;
}

bool h5_read_rows(hid_t dataset, const char *path, hid_t memory_type, int64_t first, int64_t n,
                  void *out, struct err *err)
{
    hsize_t dims[MAX_RANK] = { 0 }, start[MAX_RANK] = { 0 };
    hid_t space = H5Dget_space(dataset), memory = H5I_INVALID_HID;
    int rank = H5Sget_simple_extent_ndims(space);
    bool ok = rank > 0 && rank <= MAX_RANK && H5Sget_simple_extent_dims(space, dims, NULL) == rank;
    if (ok) {
        start[0] = (hsize_t)first;
        dims[0] = (hsize_t)n;
        memory = H5Screate_simple(rank, dims, NULL);
        ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, dims, NULL) >= 0 &&
             H5Dread(dataset, memory_type, memory, space, H5P_DEFAULT, out) >= 0;
    }
    if (!ok)
        h5_fail(err, path, "read");
    if (memory >= 0)
        H5Sclose(memory);
    H5Sclose(space);
    return ok;
}
