/* word_page.c: see word_page.h. */
#include "explain/word_page.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/html.h"

enum { STRONGEST = 5 }; /* words of a text in the index */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>body{margin:0 auto;max-width:60rem;padding:0 1rem;font:16px/1.6 system-ui,'DejaVu "
    "Sans',sans-serif;color:#1c1e21;background:#fff}\n"
    "h1{font-size:1.5rem;margin:1.2rem 0 .2rem}h2{font-size:1.15rem;margin:1.6rem 0 .4rem}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{text-align:left;"
    "padding:.2rem .7rem;border-bottom:1px solid #d9dce1;vertical-align:top}td.n,th.n{"
    "text-align:right}\n"
    ".text{white-space:pre-wrap;overflow-wrap:anywhere;background:#f9fafb;border-radius:.6rem;"
    "padding:.8rem 1rem}.text b{font-weight:inherit;border-radius:.2rem}.text s{color:#8a9097}\n"
    ".soft{color:#5b6168}tr.it td{font-weight:600}</style>\n";

/* Bytes [from, to) of a text. */
static void put_bytes(FILE *page, const char *text, int64_t from, int64_t to)
{
    char *part = strndup(text + from, (size_t)(to - from));
    html_text(page, part ? part : "");
    free(part);
}

static double largest(const double *weights, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(weights[i]));
    return most;
}

/* For the class orange, against it blue; as dense as the weight's share of the largest. */
static void put_word(FILE *page, const struct word_subject *subject, const double *weights,
                     int64_t i, double most)
{
    const struct text_word *word = &subject->found->words[i];
    double share = most > 0 ? fabs(weights[i]) / most : 0;
    put_bytes(page, subject->text, word->begin, word->core);
    if (subject->found->unread[i]) {
        html_put(page, "<s title=\"not read\">");
        put_bytes(page, subject->text, word->core, word->end);
        html_put(page, "</s>");
        return;
    }
    html_put(page, "<b style=\"background:rgba(%s,%.3f)\" title=\"%.4g\">",
             weights[i] < 0 ? "40,110,220" : "240,120,0", share, weights[i]);
    put_bytes(page, subject->text, word->core, word->end);
    html_put(page, "</b>");
}

static void put_method(FILE *page, const struct word_subject *subject, enum word_method method)
{
    const struct word_weights *found = subject->found;
    const double *weights = found->weights[method];
    double most = largest(weights, found->n);
    html_put(page, "<h2>%s</h2>\n<div class=\"text\" dir=\"auto\">", word_method_titles[method]);
    for (int64_t i = 0; i < found->n; i++)
        put_word(page, subject, weights, i, most);
    html_put(page, "</div>\n<p class=\"soft\">The densest word has %.4g.", most);
    if (method == WORDS_GRADIENTS)
        html_put(page,
                 " All weights add up to %.4f; the logit is %.4f, that of a text of padding %.4f: "
                 "a difference of %.4f.",
                 found->integral.sum, found->integral.logit, found->integral.baseline,
                 found->integral.logit - found->integral.baseline);
    html_put(page, "</p>\n");
}

void word_page_put(FILE *page, const struct model_config *config,
                   const struct word_subject *subject)
{
    const struct word_weights *found = subject->found;
    const char *name = config->class_names[found->class_index];
    fputs(head, page);
    html_put(page, "<title>%s: %s</title>\n<h1>%s</h1>\n", subject->id, name, subject->id);
    html_put(page,
             "<p>Which words the score of <bdi>%s</bdi> comes from: orange is for it, blue against "
             "it; the denser, the more. <a href=\"../index.html\">All texts</a></p>\n",
             name);
    if (subject->label[0])
        html_put(page, "<p>Label: <bdi>%s</bdi></p>\n", subject->label);
    if (found->windows > 1)
        html_put(page, "<p class=\"soft\">Read in %lld windows, whose weights are averaged.</p>\n",
                 (long long)found->windows);
    html_put(page, "<table><tr><th>Class</th><th class=\"n\">Score</th></tr>\n");
    for (int64_t c = 0; c < config->num_classes; c++)
        html_put(page, "<tr%s><td><bdi>%s</bdi></td><td class=\"n\">%.4f</td></tr>\n",
                 c == found->class_index ? " class=it" : "", config->class_names[c],
                 found->scores[c]);
    html_put(page, "</table>\n");
    for (int m = 0; m < WORDS_METHODS; m++)
        if (found->weights[m])
            put_method(page, subject, (enum word_method)m);
    html_put(page, "</html>\n");
}

void word_index_begin(FILE *page, const char *model, const char *table)
{
    fputs(head, page);
    html_put(page, "<title>Words</title>\n<h1>Words that scores come from</h1>\n");
    html_put(
        page,
        "<p>Texts of <bdi>%s</bdi>, read by <bdi>%s</bdi>. What is marked is what this network "
        "used, not what is true of a patient.</p>\n",
        table, model);
    html_put(page, "<table><tr><th>Text</th><th>Label</th><th>Class</th><th class=\"n\">Score</th>"
                   "<th>Strongest words</th></tr>\n");
}

/* The word with the largest weight among those that are not in `taken` [n_taken]; -1: none. */
static int64_t strongest(const struct word_weights *found, const double *weights,
                         const int64_t *taken, int n_taken)
{
    int64_t best = -1;
    for (int64_t i = 0; i < found->n; i++) {
        bool free_word = weights[i] > 0 && (best < 0 || weights[i] > weights[best]);
        for (int k = 0; free_word && k < n_taken; k++)
            free_word = taken[k] != i;
        best = free_word ? i : best;
    }
    return best;
}

void word_index_line(FILE *page, const struct model_config *config,
                     const struct word_subject *subject)
{
    const struct word_weights *found = subject->found;
    const double *weights =
        found->weights[found->weights[WORDS_GRADIENTS] ? WORDS_GRADIENTS : WORDS_ATTENTION];
    int64_t taken[STRONGEST];
    html_put(page,
             "<tr><td><a href=\"texts/%lld.html\"><bdi>%s</bdi></a></td><td><bdi>%s</bdi></td>",
             (long long)subject->number, subject->id, subject->label);
    html_put(page, "<td><bdi>%s</bdi></td><td class=\"n\">%.4f</td><td>",
             config->class_names[found->class_index], found->scores[found->class_index]);
    for (int k = 0; k < STRONGEST; k++) {
        taken[k] = strongest(found, weights, taken, k);
        if (taken[k] < 0)
            break;
        html_put(page, k > 0 ? " &middot; <bdi>" : "<bdi>");
        put_bytes(page, subject->text, found->words[taken[k]].core, found->words[taken[k]].end);
        html_put(page, "</bdi>");
    }
    html_put(page, "</td></tr>\n");
}

void word_index_end(FILE *page)
{
    html_put(page, "</table>\n</html>\n");
}
