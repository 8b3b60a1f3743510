/* page_put.c: see page_put.h. */
#include "audit/page_put.h"
#include <math.h>
#include "base/html.h"
#include "report/page_style.h"
#include "base/version.h"

static void put_head(const char *model, FILE *out)
{
    html_put(out,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
             "'self' file: data:; style-src 'unsafe-inline'; base-uri 'none'; form-action "
             "'none'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"generator\" content=\"microtome %s\">\n<title>Audit of %s</title>\n"
             "<style>\n",
             MICROTOME_VERSION, model);
    fputs(page_style, out);
    html_put(out,
             ".verdict{font-size:1.2rem;background:var(--card);border-left:.4rem solid var(--c2);"
             "border-radius:.3rem;padding:.8rem 1rem;margin:1rem 0}\n"
             ".verdict.bad{border-color:var(--bad)}.verdict.unsure{border-color:var(--c4)}\n"
             ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%%,340px),"
             "1fr));gap:1rem}.pair img{width:100%%;background:#fff;border-radius:.6rem}\n"
             "</style>\n</head>\n<body>\n<header><h1>Audit of %s</h1>\n"
             "<p>Can an attacker tell which patches a model was trained on?</p></header>\n<main>\n",
             model);
}

static void put_facts(const struct study *study, FILE *out)
{
    static const char *const classes[] = { "", " unsure", " bad", " unsure" };
    const struct study_attack *best = study_best(study);
    double lower = 0;
    for (int i = 0; i < study->n_attacks; i++)
        lower = fmax(lower, study->attacks[i].power.one_run.epsilon);
    html_put(out, "<p class=\"verdict%s\">%s</p>\n<dl class=\"cards\">\n",
             study->verdict == STUDY_LEAKS && !isfinite(study->promise.epsilon)
                 ? " bad"
                 : classes[study->verdict],
             study->sentence);
    html_put(out,
             "<div><dt>members</dt><dd>%lld</dd></div>\n<div><dt>others</dt><dd>%lld</dd></div>\n"
             "<div><dt>best AUC</dt><dd>%.3f</dd></div>\n",
             (long long)study->set.n_members, (long long)(study->set.n - study->set.n_members),
             best->power.roc.auc);
    if (isfinite(study->promise.epsilon))
        html_put(out, "<div><dt>promised epsilon</dt><dd>%.3g</dd></div>\n",
                 study->promise.epsilon);
    else
        html_put(out, "<div><dt>promised epsilon</dt><dd>none</dd></div>\n");
    if (study->set.coins)
        html_put(out, "<div><dt>epsilon is at least (95 %%)</dt><dd>%.2f</dd></div>\n", lower);
    if (study->looked)
        html_put(out, "<div><dt>distance to training / others</dt><dd>%.2f</dd></div>\n",
                 study->nearest.median);
    html_put(out, "</dl>\n");
    if (study->unit[0])
        html_put(out, "<p>The promise is for one %s.</p>\n", study->unit);
}

static void put_point(const struct power_point *point, FILE *out)
{
    html_put(out, "<td class=\"n\">%.1f %% (%.1f to %.1f)%s</td>", 100 * point->tpr.value,
             100 * point->tpr.low, 100 * point->tpr.high, point->above ? " above its bound" : "");
}

static void put_rows(const struct study *study, bool controls, FILE *out)
{
    for (int i = 0; i < study->n_attacks; i++) {
        const struct study_attack *a = &study->attacks[i];
        if (a->control != controls)
            continue;
        html_put(out,
                 "<tr><td class=\"name\"><strong>%s</strong><br>%s</td><td class=\"n\">%.3f (%.3f "
                 "to %.3f)</td>",
                 a->name, a->what, a->power.roc.auc, a->power.roc.delong_low,
                 a->power.roc.delong_high);
        put_point(&a->power.at[0], out);
        put_point(&a->power.at[1], out);
        if (study->set.coins && !controls)
            html_put(out, "<td class=\"n\">%.2f</td>", a->power.one_run.epsilon);
        html_put(out, "<td>%s</td></tr>\n", a->power.chance ? "chance" : "better than chance");
    }
}

static void put_table(const struct study *study, bool controls, FILE *out)
{
    html_put(out,
             "<div class=\"scroll\"><table><thead><tr><th>%s</th><th class=\"n\">AUC</th>"
             "<th class=\"n\">found at 1 %% false alarms</th>"
             "<th class=\"n\">at 0.1 %%</th>",
             controls ? "control" : "attack");
    if (study->set.coins && !controls)
        html_put(out, "<th class=\"n\">epsilon at least</th>");
    html_put(out, "<th></th></tr></thead><tbody>\n");
    put_rows(study, controls, out);
    html_put(out, "</tbody></table></div>\n");
}

static void put_attacks(const struct study *study, FILE *out)
{
    html_put(out, "<section><h2>Attacks</h2>\n<p>Each gives every patch a score; a good attack "
                  "scores members higher. An AUC of 0.5 is guessing. The second number matters "
                  "more: how many members are found with few false alarms, because that is what an "
                  "attacker can act on. In brackets 95 %% intervals; those of shares are exact "
                  "(Clopper and Pearson).</p>\n");
    put_table(study, false, out);
    html_put(out, "</section>\n<section><h2>Controls</h2>\n<p>These cannot know who was in the "
                  "training and must be at chance. Where they are not, members and others differ "
                  "by themselves, and the attacks above may have found only that.</p>\n");
    put_table(study, true, out);
    html_put(out, "</section>\n<section><h2>Curves</h2>\n<div class=\"pair\"><img src=\"roc.svg\" "
                  "alt=\"ROC curves of all attacks\"><img src=\"roc_log.svg\" alt=\"The same on "
                  "logarithmic axes\"></div>\n");
    if (isfinite(study->promise.epsilon))
        html_put(out,
                 "<p>Under epsilon %.3g and delta %.2g no attack can be above the dashed bound, "
                 "e<sup>epsilon</sup> times the false alarms plus delta.</p>\n",
                 study->promise.epsilon, study->promise.delta);
    html_put(out, "</section>\n");
}

static void put_neighbours(const struct nearest *nearest, FILE *out)
{
    html_put(out,
             "<section><h2>Copies</h2>\n<p>Of %lld images that the model made, %.1f %% (%.1f to "
             "%.1f) are nearer to a training patch than to any patch that was kept out; without "
             "memory it is half of them. The ratio of the two distances has median %.2f; 1 is "
             "good. %.1f %% have a ratio below %.1f and are called copies.</p>\n",
             (long long)nearest->samples, 100 * nearest->nearer.value, 100 * nearest->nearer.low,
             100 * nearest->nearer.high, nearest->median, 100 * nearest->copies.value,
             NEAREST_COPY);
    html_put(out,
             "<p>Control: %lld training patches with a little noise, passed off as generated: "
             "%.0f %% were called copies%s.</p></section>\n",
             (long long)nearest->planted, 100 * nearest->noticed.value,
             nearest->works ? "" : ". The test does not work on these images");
}

void page_put_audit(const struct study *study, const char *model, FILE *out)
{
    put_head(model, out);
    put_facts(study, out);
    put_attacks(study, out);
    if (study->looked)
        put_neighbours(&study->nearest, out);
    html_put(out, "<section><h2>Not tried</h2>\n<ul>\n");
    for (int i = 0; i < study->n_untried; i++)
        html_put(out, "<li>%s</li>\n", study->untried[i]);
    html_put(out,
             "</ul>\n<p>An audit shows what attacks find, never that there is nothing to be "
             "found. Only a proof such as differential privacy bounds what any attack can "
             "do.</p></section>\n</main>\n<footer><p>microtome %s</p></footer>\n</body>\n"
             "</html>\n",
             MICROTOME_VERSION);
}
