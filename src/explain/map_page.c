/* map_page.c: index.html of maps: what they are, how far to believe them, and the panels: an image
 * and its maps side by side (map.h). Opens from a disk: no scripts, relative links. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "base/file.h"
#include "base/html.h"
#include "explain/map_work.h"
#include "net/model/classifier.h"

static const char style[] =
    ":root{color-scheme:light;--ink:#1c1e21;--soft:#5b6168;--card:#f5f6f8;--rule:#d9dce1;"
    "--bad:#a40000;--good:#00693e}\n"
    "*{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,-apple-system,'Segoe UI',"
    "Roboto,'DejaVu Sans',sans-serif;color:var(--ink);background:#fff}\n"
    "main,header{max-width:1500px;margin:0 auto;padding:0 1rem}\n"
    "h1{font-size:1.6rem;margin:1.2rem 0 .2rem}h2{font-size:1.25rem;margin:2rem 0 .6rem;"
    "border-bottom:1px solid var(--rule)}h3{font-size:1.05rem;margin:0 0 .4rem;"
    "overflow-wrap:anywhere}p{margin:.4rem 0;max-width:75ch}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:.3rem .7rem;border-bottom:1px solid var(--rule);"
    "vertical-align:top}td.n,th.n{text-align:right}td.n{white-space:nowrap}thead "
    "th{vertical-align:bottom}\n"
    ".verdict{min-width:16rem}.bad{color:var(--bad);font-weight:600}.good{color:var(--good)}.soft{"
    "color:var(--soft)}\n"
    "article{background:var(--card);border-radius:.8rem;padding:1rem;margin:0 0 1.2rem;"
    "content-visibility:auto;contain-intrinsic-size:auto 480px}\n"
    ".row{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0;width:256px}\n"
    "figure img{display:block;width:256px;height:auto;background:#fff}\n"
    "img.over{object-fit:cover;object-position:right}\n"
    "figcaption{font-size:.85rem;margin-top:.3rem}\n"
    ".ramp{display:inline-block;width:8rem;height:.8rem;vertical-align:middle;border:1px solid "
    "var(--rule)}.for{background:linear-gradient(to right,#fff,rgb(140,190,60),rgb(255,235,0))}\n"
    ".both{background:linear-gradient(to right,rgb(0,40,200),#fff,rgb(255,235,0))}\n";

/* A name as part of an address. */
static void put_address(FILE *page, const char *name)
{
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        if (isalnum(*at) || strchr("-_.~+", *at))
            fputc(*at, page);
        else
            fprintf(page, "%%%02X", *at);
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *class_name(const struct map_run *run)
{
    return run->request->model->config.class_names[run->subjects->class_index];
}

/* "Grad-CAM" or, of several layers, "Grad-CAM, layer4". */
static void put_title(FILE *page, const struct map_run *run, int column)
{
    const struct map_column *c = &run->columns[column];
    html_put(page, "%s", c->explainer->title);
    if (c->layer >= 0 && run->n_layers > 1)
        html_put(page, ", <bdi>%s</bdi>", c->layer_name);
}

static void put_number(FILE *page, double value)
{
    if (isfinite(value))
        html_put(page, "<td class=\"n\">%.3f</td>", value);
    else
        html_put(page, "<td class=\"n\">&ndash;</td>");
}

/* --- how far to believe it --- */

/* The colour of the verdict. */
static const char *verdict_class(const struct map_summary_column *column)
{
    return map_untold(column) ? "soft" : map_is_better(column) ? "good" : "bad";
}

static void put_orders(FILE *page, const struct map_run *run, const struct map_summary *summary)
{
    html_put(page,
             "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">map</th>"
             "<th scope=\"col\" class=\"n\">deletion</th><th scope=\"col\" class=\"n\">by chance"
             "</th><th scope=\"col\" class=\"n\">insertion</th><th scope=\"col\" class=\"n\">by "
             "chance</th><th scope=\"col\" class=\"n\">better than chance</th>"
             "<th scope=\"col\" class=\"n\">still alike with random weights</th>");
    if (run->inside)
        html_put(page, "<th scope=\"col\" class=\"n\">inside</th><th scope=\"col\" "
                       "class=\"n\">of the area</th>");
    html_put(page, "<th scope=\"col\">verdict</th></tr></thead><tbody>\n");
    for (int i = 0; i < run->n_columns; i++) {
        const struct map_summary_column *c = &summary->columns[i];
        html_put(page, "<tr><th scope=\"row\">");
        put_title(page, run, i);
        html_put(page, "</th>");
        put_number(page, c->deletion);
        put_number(page, c->random_deletion);
        put_number(page, c->insertion);
        put_number(page, c->random_insertion);
        html_put(page, "<td class=\"n\">%lld of %lld</td>", (long long)c->better, (long long)c->n);
        put_number(page, c->redrawn ? c->correlation[BELIEF_DEPTHS - 1] : NAN);
        if (run->inside) {
            put_number(page, c->map_share);
            put_number(page, c->area_share);
        }
        html_put(page, "<td class=\"%s verdict\">%s</td></tr>\n", verdict_class(c), map_verdict(c));
    }
    html_put(page, "</tbody></table></div>\n");
}

static void put_agreement(FILE *page, const struct map_run *run, const struct map_summary *summary)
{
    if (run->n_columns < 2)
        return;
    html_put(page, "<h3>Agreement between maps</h3><p>Spearman's rank correlation, the mean over "
                   "all images: 1 means the same order of pixels, 0 no relation. Where methods "
                   "disagree, none of them alone is evidence.</p><div class=\"scroll\"><table>"
                   "<thead><tr><td></td>");
    for (int i = 0; i < run->n_columns; i++) {
        html_put(page, "<th scope=\"col\" class=\"n\">");
        put_title(page, run, i);
        html_put(page, "</th>");
    }
    html_put(page, "</tr></thead><tbody>\n");
    for (int a = 0; a < run->n_columns; a++) {
        html_put(page, "<tr><th scope=\"row\">");
        put_title(page, run, a);
        html_put(page, "</th>");
        for (int b = 0; b < run->n_columns; b++)
            put_number(page, summary->agreement[a][b]);
        html_put(page, "</tr>\n");
    }
    html_put(page, "</tbody></table></div>\n");
}

static void put_belief(FILE *page, const struct map_run *run, const struct map_summary *summary)
{
    html_put(page,
             "<h2>How far to believe these maps</h2><p><b>Deletion</b>: the pixels that a map "
             "marks most are blotted out first, and the score should fall quickly: low is good. "
             "<b>Insertion</b>: they appear first in a blurred image, and the score should rise "
             "quickly: high is good. <b>By chance</b> is the same with the map turned and moved "
             "at random. <b>With random weights</b>: the map of the same network after its "
             "weights were replaced by random ones, compared with the real map; near 1, the map "
             "does not depend on what the network learnt, and is no explanation.</p>\n");
    if (run->inside)
        html_put(page, "<p><b>Inside</b>: the share of the map that is inside the nuclei or areas "
                       "that were outlined, next to their share of the area.</p>\n");
    put_orders(page, run, summary);
    put_agreement(page, run, summary);
}

/* --- panels --- */

/* What the numbers of one map say, in a sentence. */
static void put_words(FILE *page, const json_t *map)
{
    const json_t *order = json_object_get(map, "belief");
    double better_by = number(order, "better_by");
    if (isnan(better_by)) {
        html_put(page, "<span class=\"bad\">The map is the same everywhere: it says nothing."
                       "</span>");
        return;
    }
    html_put(page,
             "<span class=\"%s\">%s</span><br><span class=\"soft\">deletion %.2f, by chance "
             "%.2f; insertion %.2f, by chance %.2f</span>",
             better_by > 0.05   ? "good"
             : better_by > 0.01 ? "soft"
                                : "bad",
             better_by > 0.05   ? "What is marked matters for the score."
             : better_by > 0.01 ? "What is marked matters little more than the rest."
                                : "What is marked matters no more than the rest.",
             number(order, "deletion"), number(order, "random_deletion"),
             number(order, "insertion"), number(order, "random_insertion"));
}

static void put_map(FILE *page, const struct map_run *run, int column, const char *name,
                    const json_t *subject, const json_t *map)
{
    long long width = json_integer_value(json_object_get(subject, "width"));
    long long height = json_integer_value(json_object_get(subject, "height"));
    html_put(page, "<figure><a href=\"");
    put_address(page, name);
    fputc('/', page);
    put_address(page, run->columns[column].name);
    html_put(page,
             ".png\"><img class=\"over\" style=\"aspect-ratio:%lld/%lld\" loading=\"lazy\" "
             "alt=\"Map over the image\" src=\"",
             width, height);
    put_address(page, name);
    fputc('/', page);
    put_address(page, run->columns[column].name);
    html_put(page, ".png\"></a><figcaption><b>");
    put_title(page, run, column);
    html_put(page, "</b><br>");
    put_words(page, map);
    html_put(page, "</figcaption></figure>\n");
}

static void put_place(FILE *page, const json_t *subject)
{
    const char *slide = json_string_value(json_object_get(subject, "slide"));
    double mpp = number(subject, "mpp"), width = number(subject, "width");
    double half = number(subject, "downsample") / 2;
    if (slide)
        html_put(page, "slide <bdi>%s</bdi>, around %.0f, %.0f px<br>", slide,
                 number(subject, "x_l0") + half * width,
                 number(subject, "y_l0") + half * number(subject, "height"));
    if (isfinite(mpp))
        html_put(page, "%.0f \xC2\xB5m wide<br>", mpp * width);
    if (json_is_integer(json_object_get(subject, "lesion")))
        html_put(page, "lesion %lld<br>",
                 (long long)json_integer_value(json_object_get(subject, "lesion")));
}

static void put_subject(FILE *page, const struct map_run *run, const json_t *subject)
{
    const char *name = json_string_value(json_object_get(subject, "name"));
    const json_t *maps = json_object_get(subject, "maps");
    name = name ? name : "";
    html_put(page, "<article><h3><bdi>%s</bdi></h3>\n", name);
    if (!maps) {
        const char *why = json_string_value(json_object_get(subject, "error"));
        html_put(page, "<p class=\"bad\">%s</p></article>\n", why ? why : "was not made");
        return;
    }
    html_put(page, "<div class=\"row\"><figure><a href=\"");
    put_address(page, name);
    html_put(page, "/image.png\"><img loading=\"lazy\" alt=\"The image\" src=\"");
    put_address(page, name);
    html_put(page, "/image.png\"></a><figcaption>%s of <b><bdi>%s</bdi></b>: <b>%.3f</b><br>",
             model_predicts_number(run->request->model) ? "value" : "score", class_name(run),
             number(subject, "score"));
    put_place(page, subject);
    html_put(page, "</figcaption></figure>\n");
    for (int i = 0; i < run->n_columns; i++)
        put_map(page, run, i, name, subject, json_array_get(maps, (size_t)i));
    html_put(page, "</div></article>\n");
}

static void put_legend(FILE *page, const struct map_run *run)
{
    bool positive = false, both = false;
    for (int i = 0; i < run->n_columns; i++) {
        positive = positive || run->columns[i].explainer->positive;
        both = both || !run->columns[i].explainer->positive;
    }
    html_put(page, "<p>");
    if (positive)
        html_put(page,
                 "<span class=\"ramp for\"></span> from nothing to the most that speaks for "
                 "<bdi>%s</bdi>. ",
                 class_name(run));
    if (both)
        html_put(page,
                 "Signed maps: <span class=\"ramp both\"></span> against and for "
                 "<bdi>%s</bdi>. ",
                 class_name(run));
    html_put(page,
             "The dark line is around the hottest areas: at least %g of the map's highest value. "
             "Every map has its own scale: colours of different images cannot be compared. A "
             "click shows a map beside its image.</p>\n",
             run->request->hot);
}

bool map_write_page(const struct map_run *run, json_t *const *subjects, int64_t n,
                    const struct map_summary *summary, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, run->request->folder, "index.html", err))
        return false;
    FILE *page = out.stream;
    html_put(page,
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
             "<title>Why %s?</title><style>\n",
             class_name(run));
    fputs(style, page);
    html_put(page,
             "</style></head><body><header><h1>Why <bdi>%s</bdi>?</h1>"
             "<p>What in an image the score comes from, as far as the methods can tell. "
             "Model: <bdi>%s</bdi> (%s). Images: %lld.</p></header><main>\n",
             class_name(run), run->request->model_name, run->model_hash, (long long)n);
    put_belief(page, run, summary);
    html_put(page, "<h2>Maps</h2>\n");
    put_legend(page, run);
    for (int64_t i = 0; i < n; i++)
        put_subject(page, run, subjects[i]);
    html_put(page, "</main></body></html>\n");
    return file_out_commit(&out, err);
}
