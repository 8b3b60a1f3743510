/* xml.c: an XML text -> calls for each element, over libxml2's SAX2 interface. */
#include "base/xml.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    xmlParserCtxtPtr parser;
    const char *path;
    const struct xml_walker *walker;
    void *user;
    struct err *err;
    bool failed; /* only the first error is reported */
};

static void stop(struct walk *walk)
{
    walk->failed = true;
    xmlStopParser(walk->parser);
}

static void on_start(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
                     int n_namespaces, const xmlChar **namespaces, int n_attributes,
                     int n_defaulted, const xmlChar **attributes)
{
    (void)prefix, (void)uri, (void)n_namespaces, (void)namespaces, (void)n_defaulted;
    struct walk *walk = data;
    struct xml_element element = { .path = walk->path,
                                   .name = (const char *)name,
                                   .line = xmlSAX2GetLineNumber(walk->parser),
                                   .attributes = attributes,
                                   .n_attributes = n_attributes };
    if (!walk->failed && !walk->walker->start(walk->user, &element, walk->err))
        stop(walk);
}

static void on_end(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    (void)prefix, (void)uri;
    struct walk *walk = data;
    if (!walk->failed && walk->walker->end &&
        !walk->walker->end(walk->user, (const char *)name, walk->err))
        stop(walk);
}

static void on_text(void *data, const xmlChar *text, int size)
{
    struct walk *walk = data;
    if (!walk->failed && walk->walker->text)
        walk->walker->text(walk->user, (const char *)text, (size_t)size);
}

static void on_document_type(void *data, const xmlChar *name, const xmlChar *external,
                             const xmlChar *system)
{
    (void)name, (void)external, (void)system;
    struct walk *walk = data;
    if (walk->failed)
        return;
    err_set(walk->err, ERR_FORMAT,
            "%s:%d: the file declares a document type, which could contain an entity bomb; remove "
            "the <!DOCTYPE ...>",
            walk->path, xmlSAX2GetLineNumber(walk->parser));
    stop(walk);
}

static void on_error(void *data, xmlErrorPtr error)
{
    struct walk *walk = data;
    if (walk->failed || error->level < XML_ERR_ERROR)
        return;
    const char *message = error->message ? error->message : "cannot be parsed";
    err_set(walk->err, error->code == XML_ERR_NO_MEMORY ? ERR_MEMORY : ERR_FORMAT,
            "%s:%d: not well-formed XML: %.*s", walk->path, error->line,
            (int)strcspn(message, "\n"), message);
    stop(walk);
}

/* Broken encodings are reported here too, and by default on the terminal. */
static void on_generic_error(void *data, const char *format, ...)
{
    (void)data, (void)format;
}

bool xml_walk(const char *text, size_t size, const char *path, const struct xml_walker *walker,
              void *user, struct err *err)
{
    if (size == 0 || size > INT_MAX)
        return err_set(err, ERR_FORMAT, "%s: the file is empty or larger than 2 GB", path);
    xmlInitParser();
    xmlSetGenericErrorFunc(NULL, on_generic_error);
    xmlParserCtxtPtr parser = xmlCreateMemoryParserCtxt(text, (int)size);
    if (!parser)
        return err_memory(err, path);
    struct walk walk = {
        .parser = parser, .path = path, .walker = walker, .user = user, .err = err
    };
    xmlSAXHandler calls = { .initialized = XML_SAX2_MAGIC,
                            .startElementNs = on_start,
                            .endElementNs = on_end,
                            .characters = on_text,
                            .internalSubset = on_document_type,
                            .serror = on_error };
    xmlCtxtUseOptions(parser, XML_PARSE_NONET);
    *parser->sax = calls;
    parser->userData = &walk;
    xmlParseDocument(parser);
    if (!walk.failed && !parser->wellFormed) {
        err_set(err, ERR_FORMAT, "%s: not well-formed XML", path);
        walk.failed = true;
    }
    xmlFreeDoc(parser->myDoc);
    xmlFreeParserCtxt(parser);
    return !walk.failed;
}

struct root_name {
    char *out;
    size_t room;
    bool found;
};

static bool take_root(void *user, const struct xml_element *element, struct err *err)
{
    (void)err;
    struct root_name *root = user;
    snprintf(root->out, root->room, "%s", element->name);
    root->found = true;
    return false;
}

bool xml_root(const char *text, size_t size, const char *path, char *out, size_t room,
              struct err *err)
{
    static const struct xml_walker walker = { .start = take_root };
    struct root_name root = { .out = out, .room = room };
    bool walked = xml_walk(text, size, path, &walker, &root, err);
    if (walked)
        err_set(err, ERR_FORMAT, "%s: the XML has no element", path);
    return root.found;
}

bool xml_text(const struct xml_element *element, const char *attribute, char *out, size_t room)
{
    out[0] = 0;
    for (int i = 0; i < element->n_attributes; i++) {
        /* local name, prefix, URI, begin of the value, end of the value */
        const unsigned char **entry = element->attributes + 5 * i;
        if (strcmp((const char *)entry[0], attribute))
            continue;
        size_t length = (size_t)(entry[4] - entry[3]);
        if (length >= room)
            length = room - 1;
        memcpy(out, entry[3], length);
        out[length] = 0;
        return true;
    }
    return false;
}

bool xml_number(const struct xml_element *element, const char *attribute, bool required,
                double *out, struct err *err)
{
    char text[64];
    if (!xml_text(element, attribute, text, sizeof text)) {
        if (!required)
            return true;
        return err_set(err, ERR_FORMAT, "%s:%lld: <%s> has no %s", element->path,
                       (long long)element->line, element->name, attribute);
    }
    char *comma = strchr(text, '.') ? NULL : strchr(text, ','); /* some locales write 12,5 */
    if (comma)
        *comma = '.';
    char *end = text;
    double value = strtod(text, &end);
    end += strspn(end, " \t\r\n");
    if (end == text || *end || !isfinite(value))
        return err_set(err, ERR_FORMAT, "%s:%lld: %s=\"%s\" is not a number", element->path,
                       (long long)element->line, attribute, text);
    *out = value;
    return true;
}
