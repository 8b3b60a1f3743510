/* outlines_json.c: GeoJSON and HoVer-Net's JSON -> outlines (outlines.h). The text is walked from
 * front to back without a tree, because a slide's file may have hundreds of megabytes; what is not
 * needed is skipped over, also QuPath's NaN. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "nuclei/outlines.h"

#define MAX_NESTING 64
#define LIMIT_PX 1e8 /* no slide is that large */

struct walk {
    const char *start, *at, *end, *path;
    struct nuclei_outlines *out;
    double mag;
    struct err *err;
};

static bool refuse(struct walk *w, const char *why)
{
    long line = 1;
    for (const char *c = w->start; c < w->at && c < w->end; c++)
        line += *c == '\n';
    if (w->at > w->start && w->at >= w->end)
        why = "the file is truncated";
    return err_set(w->err, ERR_FORMAT, "%s:%ld: %s", w->path, line, why);
}

static char next(struct walk *w)
{
    while (w->at < w->end && isspace((unsigned char)*w->at))
        w->at++;
    return w->at < w->end ? *w->at : '\0';
}

static bool take(struct walk *w, char c)
{
    if (next(w) != c)
        return false;
    w->at++;
    return true;
}

/* The bytes of a string between its quotes, as they are in the file. */
static bool string(struct walk *w, const char **text, size_t *length)
{
    if (!take(w, '"'))
        return refuse(w, "not JSON: a text in quotes is expected");
    *text = w->at;
    while (w->at < w->end && *w->at != '"')
        w->at += *w->at == '\\' && w->at + 1 < w->end ? 2 : 1;
    if (w->at >= w->end)
        return refuse(w, "not JSON: a text without an end");
    *length = (size_t)(w->at - *text);
    w->at++;
    return true;
}

static bool is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static bool scalar(struct walk *w)
{
    const char *from = w->at;
    while (w->at < w->end && (isalnum((unsigned char)*w->at) || strchr("+-.", *w->at)) && *w->at)
        w->at++;
    return w->at > from || refuse(w, "not JSON: a value is expected");
}

/* Passes over any value. */
static bool skip(struct walk *w)
{
    char open[MAX_NESTING];
    int depth = 0;
    do {
        char c = next(w);
        const char *text;
        size_t length;
        if (c == '{' || c == '[') {
            if (depth == MAX_NESTING)
                return refuse(w, "nested too deeply");
            open[depth++] = c;
            w->at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0 || open[depth - 1] != (c == '}' ? '{' : '['))
                return refuse(w, "not JSON: a bracket that nothing opened");
            depth--;
            w->at++;
        } else if (depth > 0 && (c == ',' || c == ':')) {
            w->at++;
        } else if (c == '"' ? !string(w, &text, &length) : !scalar(w)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

/* The next key of an object that was opened; false at its end or after an error. */
static bool key(struct walk *w, bool *first, const char **name, size_t *length, bool *ok)
{
    *ok = true;
    if (take(w, '}'))
        return false;
    if (!*first && !take(w, ','))
        *ok = refuse(w, "not JSON: a comma is expected");
    *first = false;
    *ok = *ok && string(w, name, length) &&
          (take(w, ':') || refuse(w, "not JSON: a colon is expected"));
    return *ok;
}

/* The next item of a list that was opened; false at its end or after an error. */
static bool item(struct walk *w, bool *first, bool *ok)
{
    *ok = true;
    if (take(w, ']'))
        return false;
    if (!*first && !take(w, ','))
        *ok = refuse(w, "not JSON: a comma is expected");
    *first = false;
    return *ok;
}

static bool number(struct walk *w, double *out)
{
    char c = next(w), *end = NULL;
    if (c != '-' && !isdigit((unsigned char)c))
        return refuse(w, "a number is expected");
    *out = strtod(w->at, &end);
    if (end > w->end || !isfinite(*out) || fabs(*out) > LIMIT_PX)
        return refuse(w, "a coordinate beyond the extent of any slide");
    w->at = end;
    return true;
}

/* [x, y] or [x, y, z] */
static bool point(struct walk *w)
{
    double x, y;
    bool first = false, ok;
    if (!take(w, '['))
        return refuse(w, "a point [x, y] is expected");
    if (!number(w, &x))
        return false;
    if (!take(w, ','))
        return refuse(w, "a point [x, y] is expected");
    if (!number(w, &y))
        return false;
    while (item(w, &first, &ok))
        if (!skip(w))
            return false;
    return ok && outlines_point(w->out, x, y, w->err);
}

/* Points, or lists of them at any depth: a ring, a polygon, many polygons. */
static bool rings(struct walk *w, int depth)
{
    bool first = true, is_ring = false, ok;
    if (depth > 4 || !take(w, '['))
        return refuse(w, "a list of points is expected");
    while (item(w, &first, &ok)) {
        const char *at = w->at;
        bool is_point = take(w, '[') && next(w) != '[' && next(w) != ']';
        w->at = at;
        if (is_point && !is_ring) {
            if (!outlines_ring(w->out, w->err))
                return false;
            is_ring = true;
        }
        if (is_ring ? !point(w) : !rings(w, depth + 1))
            return false;
    }
    return ok;
}

/* Adds the rings of an area; other geometries have none. */
static bool geometry(struct walk *w, int depth)
{
    const char *name, *coordinates = NULL, *parts = NULL, *type = "";
    size_t length, type_length = 0;
    bool first = true, ok;
    if (depth > 8 || !take(w, '{'))
        return refuse(w, "a geometry is expected");
    while (key(w, &first, &name, &length, &ok)) {
        next(w);
        if (is(name, length, "coordinates"))
            coordinates = w->at;
        else if (is(name, length, "geometries"))
            parts = w->at;
        if (is(name, length, "type") ? !string(w, &type, &type_length) : !skip(w))
            return false;
    }
    if (!ok)
        return false;
    const char *end = w->at;
    bool area = is(type, type_length, "Polygon") || is(type, type_length, "MultiPolygon");
    if (area && coordinates) {
        w->at = coordinates;
        ok = rings(w, 0);
    } else if (parts && is(type, type_length, "GeometryCollection")) {
        w->at = parts;
        first = true;
        ok = take(w, '[') || refuse(w, "a list of geometries is expected");
        while (ok && item(w, &first, &ok))
            ok = geometry(w, depth + 1);
    }
    w->at = end;
    return ok;
}

/* Is the last nucleus an area? Points, lines and contours of one or two points are not. */
static bool is_area(const struct nuclei_outlines *o)
{
    const struct nucleus_outline *last = &o->items[o->n - 1];
    for (int64_t r = last->first; r < last->first + last->n; r++)
        if (o->rings[r].n < 3)
            return false;
    return last->n > 0;
}

struct feature {
    const char *geometry, *nucleus, *children; /* where they begin; NULL: not there */
    const char *kind;                          /* the class */
    size_t kind_length;
    bool annotation;
};

/* "Tumor", {"name": "Tumor"} or {"names": ["Tumor", ..]} */
static bool classification(struct walk *w, struct feature *f)
{
    const char *name;
    size_t length;
    bool first = true, ok;
    if (next(w) == '"')
        return string(w, &f->kind, &f->kind_length);
    if (!take(w, '{'))
        return skip(w);
    while (key(w, &first, &name, &length, &ok)) {
        next(w);
        const char *at = w->at;
        bool list = is(name, length, "names") && take(w, '[');
        if ((list || is(name, length, "name")) && next(w) == '"' &&
            !string(w, &f->kind, &f->kind_length))
            return false;
        w->at = at;
        if (!skip(w))
            return false;
    }
    return ok;
}

static bool properties(struct walk *w, struct feature *f)
{
    const char *name, *type;
    size_t length, type_length;
    bool first = true, ok;
    if (!take(w, '{'))
        return skip(w);
    while (key(w, &first, &name, &length, &ok)) {
        next(w);
        if (is(name, length, "classification")) {
            ok = classification(w, f);
        } else if ((is(name, length, "objectType") || is(name, length, "object_type")) &&
                   *w->at == '"') {
            ok = string(w, &type, &type_length);
            f->annotation = ok && is(type, type_length, "annotation");
        } else {
            if (is(name, length, "childObjects"))
                f->children = w->at;
            if (is(name, length, "nucleusGeometry"))
                f->nucleus = w->at;
            ok = skip(w);
        }
        if (!ok)
            return false;
    }
    return ok;
}

static bool features(struct walk *w, int depth);

static bool add_feature(struct walk *w, const struct feature *f, int depth)
{
    const char *end = w->at;
    bool ok = true;
    w->at = f->nucleus ? f->nucleus : f->geometry;
    if (w->at && next(w) == '{') {
        ok = outlines_add(w->out, f->annotation, w->err) && geometry(w, 0);
        if (ok && !is_area(w->out))
            outlines_undo(w->out);
        else if (ok && f->kind)
            ok = outlines_kind(w->out, f->kind, f->kind_length, w->err);
    }
    w->at = f->children;
    if (ok && w->at && next(w) == '[')
        ok = features(w, depth + 1);
    w->at = end;
    return ok;
}

static bool feature(struct walk *w, int depth)
{
    struct feature f = { 0 };
    const char *name, *type;
    size_t length, type_length;
    bool first = true, ok;
    if (!take(w, '{'))
        return refuse(w, "a feature is expected");
    while (key(w, &first, &name, &length, &ok)) {
        next(w);
        if (is(name, length, "properties")) {
            ok = properties(w, &f);
        } else if (is(name, length, "id") && *w->at == '"') { /* QuPath 0.2 */
            ok = string(w, &type, &type_length);
            f.annotation |= ok && is(type, type_length, "PathAnnotationObject");
        } else {
            if (is(name, length, "geometry"))
                f.geometry = w->at;
            if (is(name, length, "nucleusGeometry"))
                f.nucleus = w->at;
            if (is(name, length, "childObjects"))
                f.children = w->at;
            ok = skip(w);
        }
        if (!ok)
            return false;
    }
    return ok && add_feature(w, &f, depth);
}

static bool features(struct walk *w, int depth)
{
    bool first = true, ok;
    if (depth > 16 || !take(w, '['))
        return refuse(w, "a list of features is expected");
    while (item(w, &first, &ok))
        if (!feature(w, depth))
            return false;
    return ok;
}

/* {"contour": [[x, y], ..], "type": 2, ..} */
static bool hover_nucleus(struct walk *w)
{
    const char *name, *contour = NULL, *type = NULL;
    size_t length, type_length = 0;
    bool first = true, ok;
    if (!take(w, '{'))
        return refuse(w, "a nucleus of HoVer-Net is expected");
    while (key(w, &first, &name, &length, &ok)) {
        next(w);
        const char *at = w->at;
        if (!skip(w))
            return false;
        if (is(name, length, "contour"))
            contour = at;
        if (is(name, length, "type"))
            type = at, type_length = (size_t)(w->at - at);
    }
    if (type && *type == '"') /* a name instead of a number */
        type++, type_length -= 2;
    const char *end = w->at;
    if (!ok || !contour)
        return ok && refuse(w, "a nucleus of HoVer-Net without \"contour\"");
    w->at = contour;
    ok = outlines_add(w->out, false, w->err) && rings(w, 0);
    if (ok && !is_area(w->out))
        outlines_undo(w->out);
    else if (ok && type && memcmp(type, "null", type_length < 4 ? type_length : 4) != 0)
        ok = outlines_kind(w->out, type, type_length, w->err);
    w->at = end;
    return ok;
}

static bool hover(struct walk *w)
{
    const char *name;
    size_t length;
    bool first = true, ok;
    w->out->centres = true;
    if (!take(w, '{'))
        return refuse(w, "\"nuc\" is expected to be {\"1\": {\"contour\": ..}, ..}");
    while (key(w, &first, &name, &length, &ok))
        if (!hover_nucleus(w))
            return false;
    return ok;
}

/* What the outermost object has, by its keys. */
struct top {
    const char *features, *nuc, *mag;
    bool feature; /* it is one itself */
};

static bool look(struct walk *w, struct top *top)
{
    const char *name;
    size_t length;
    bool first = true, ok;
    w->at++;
    while (key(w, &first, &name, &length, &ok)) {
        next(w);
        if (is(name, length, "features"))
            top->features = w->at;
        if (is(name, length, "nuc"))
            top->nuc = w->at;
        if (is(name, length, "mag") && isdigit((unsigned char)*w->at))
            top->mag = w->at;
        top->feature |= is(name, length, "geometry");
        if (!skip(w))
            return false;
    }
    return ok;
}

static bool read_object(struct walk *w)
{
    struct top top = { 0 };
    const char *start = w->at;
    if (!look(w, &top))
        return false;
    if (top.mag) {
        w->at = top.mag;
        if (!number(w, &w->mag))
            return false;
    }
    w->at = top.features ? top.features : top.nuc ? top.nuc : start;
    if (top.features)
        return features(w, 0);
    if (top.nuc)
        return hover(w);
    if (top.feature)
        return feature(w, 0);
    return refuse(w, "neither GeoJSON features nor HoVer-Net's \"nuc\"");
}

bool outlines_parse(const char *text, size_t size, const char *path, struct nuclei_outlines *out,
                    double *mag, struct err *err)
{
    struct walk w = {
        .start = text, .at = text, .end = text + size, .path = path, .out = out, .err = err
    };
    char c = next(&w);
    bool ok = c == '['   ? features(&w, 0)
              : c == '{' ? read_object(&w)
                         : refuse(&w, "neither a label image nor JSON with outlines");
    *mag = w.mag;
    return ok;
}
