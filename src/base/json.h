/* json.h: writes JSON to a stream as it is produced; nothing is kept in memory.
 * `key` is NULL inside an array and at the top. The stream's error flag shows whether everything
 * was written: check it at the end (file_out_commit does). Reading: json_file.h. */
#ifndef BASE_JSON_H
#define BASE_JSON_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 32

struct json_out {
    FILE *stream;
    int depth;
    bool compact[JSON_DEPTH]; /* this level is on one line */
    bool filled[JSON_DEPTH];  /* something was written on this level */
};

void json_out_begin(struct json_out *json, FILE *stream);
void json_out_end(struct json_out *json); /* a final newline */

void json_out_object(struct json_out *json, const char *key);
void json_out_array(struct json_out *json, const char *key);
/* The same, all on one line. */
void json_out_object_line(struct json_out *json, const char *key);
void json_out_array_line(struct json_out *json, const char *key);
void json_out_close_object(struct json_out *json);
void json_out_close_array(struct json_out *json);

void json_out_text(struct json_out *json, const char *key, const char *value); /* NULL: null */
void json_out_int(struct json_out *json, const char *key, int64_t value);
void json_out_real(struct json_out *json, const char *key, double value); /* not finite: null */
void json_out_bool(struct json_out *json, const char *key, bool value);
#endif
