/* json.c: see json.h. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void json_out_begin(struct json_out *json, FILE *stream)
{
    memset(json, 0, sizeof *json);
    json->stream = stream;
}

void json_out_end(struct json_out *json)
{
    fputc('\n', json->stream);
}

/* Bytes of the UTF-8 sequence that begins here, or 0 if there is none. */
static int utf8_length(const unsigned char *at)
{
    int length = at[0] < 0x80 ? 1 : at[0] >= 0xC2 && at[0] < 0xE0 ? 2 : 0;
    if (at[0] >= 0xE0 && at[0] < 0xF0)
        length = 3;
    else if (at[0] >= 0xF0 && at[0] < 0xF5)
        length = 4;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

static void write_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int length = utf8_length(at);
        if (length == 0) {
            fputs("\\ufffd", stream); /* not UTF-8: a file name in another encoding */
            at++;
        } else if (*at == '"' || *at == '\\') {
            fprintf(stream, "\\%c", *at++);
        } else if (*at < 0x20) {
            fprintf(stream, "\\u%04x", *at++);
        } else {
            fwrite(at, 1, (size_t)length, stream);
            at += length;
        }
    }
    fputc('"', stream);
}

static void begin_value(struct json_out *json, const char *key)
{
    int depth = json->depth;
    if (json->filled[depth])
        fputs(json->compact[depth] ? ", " : ",", json->stream);
    if (depth > 0 && !json->compact[depth])
        fprintf(json->stream, "\n%*s", 2 * depth, "");
    json->filled[depth] = true;
    if (key) {
        write_string(json->stream, key);
        fputs(": ", json->stream);
    }
}

static void open_level(struct json_out *json, const char *key, char bracket, bool compact)
{
    begin_value(json, key);
    fputc(bracket, json->stream);
    bool inherited = json->compact[json->depth];
    if (json->depth + 1 < JSON_DEPTH)
        json->depth++;
    json->compact[json->depth] = compact || inherited;
    json->filled[json->depth] = false;
}

static void close_level(struct json_out *json, char bracket)
{
    bool broken = json->filled[json->depth] && !json->compact[json->depth];
    if (json->depth > 0)
        json->depth--;
    if (broken)
        fprintf(json->stream, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->stream);
}

void json_out_object(struct json_out *json, const char *key)
{
    open_level(json, key, '{', false);
}

void json_out_array(struct json_out *json, const char *key)
{
    open_level(json, key, '[', false);
}

void json_out_object_line(struct json_out *json, const char *key)
{
    open_level(json, key, '{', true);
}

void json_out_array_line(struct json_out *json, const char *key)
{
    open_level(json, key, '[', true);
}

void json_out_close_object(struct json_out *json)
{
    close_level(json, '}');
}

void json_out_close_array(struct json_out *json)
{
    close_level(json, ']');
}

void json_out_text(struct json_out *json, const char *key, const char *value)
{
    begin_value(json, key);
    if (value)
        write_string(json->stream, value);
    else
        fputs("null", json->stream);
}

void json_out_int(struct json_out *json, const char *key, int64_t value)
{
    begin_value(json, key);
    fprintf(json->stream, "%lld", (long long)value);
}

void json_out_real(struct json_out *json, const char *key, double value)
{
    begin_value(json, key);
    if (!isfinite(value)) {
        fputs("null", json->stream);
        return;
    }
    if (value == trunc(value) && fabs(value) < 1e15) { /* many are, and this is fast */
        fprintf(json->stream, "%lld", (long long)value);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) { /* the shortest that reads back the same */
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, json->stream);
}

void json_out_bool(struct json_out *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->stream);
}
