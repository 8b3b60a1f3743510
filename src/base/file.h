/* file.h: files and paths. An output is written beside its final name as NAME.<process>.part,
 * synced and renamed: a file that exists is complete, and a killed run leaves at most a .part that
 * the next one removes. */
#ifndef BASE_FILE_H
#define BASE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/err.h"

struct file_out {
    char *path;   /* the final name */
    char *draft;  /* what it is called until then (draft.h) */
    FILE *stream; /* open on the draft after file_out_open; NULL after file_out_reserve */
    bool reserved;
    int fd;          /* of the draft, if it is reserved */
    char handle[40]; /* a name by which libraries open the draft, even if it has been replaced */
};

/* Starts an output: always a new file, never an existing one or the target of a link. _open gives a
 * stream; _reserve only `handle`, for libraries that open files themselves. End with
 * file_out_commit or file_out_discard. */
bool file_out_open(struct file_out *out, const char *path, struct err *err);
bool file_out_reserve(struct file_out *out, const char *path, struct err *err);
/* file_out_open of folder/name. */
bool file_out_open_in(struct file_out *out, const char *folder, const char *name, struct err *err);

/* Closes, syncs and renames; every step is checked. On failure the .part is removed. */
bool file_out_commit(struct file_out *out, struct err *err);

/* The same without syncing, for hints that may be lost in a crash. */
bool file_out_rename(struct file_out *out, struct err *err);

/* Removes the .part. Does nothing on an output that was committed or never started. */
void file_out_discard(struct file_out *out);

/* Removes folder/name if it exists and can be removed. */
void file_remove_in(const char *folder, const char *name);

/* A copy, written beside and renamed; in pieces, for files of any size. */
bool file_copy(const char *from, const char *to, struct err *err);

/* Creates the folder and its parents; removes .part files left in it by dead runs. */
bool file_make_folder(const char *path, struct err *err);
bool file_exists(const char *path);
bool file_is_folder(const char *path);

/* Reads a small text or data file whole, with a 0 byte after it. Fails above `limit` bytes. The
 * caller owns *out; free(). */
bool file_read(const char *path, size_t limit, char **out, size_t *size, struct err *err);

/* "dir/name.ext" -> "name", owned by the caller; NULL if out of memory. */
char *file_stem(const char *path);
/* "folder/name", where path is that folder or a file in it; owned by the caller; NULL if out of
 * memory. */
char *file_beside(const char *path, const char *name);
/* The absolute path; symbolic links are kept, because results are named after them. Owned by the
 * caller; NULL if out of memory. */
char *file_absolute(const char *path);
/* The extension with its dot, or "". Points into path. */
const char *file_extension(const char *path);
#endif
