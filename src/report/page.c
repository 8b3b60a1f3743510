/* page.c: the page around the slides (page.h). */
#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/claim.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "base/version.h"
#include "base/html.h"
#include "report/page_sections.h"
#include "report/page_style.h"
#include "base/text.h"

static bool picture_slide(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    struct page *page = arg;
    char *folder = text_format("%s/slides/%lld", page->request->output, (long long)index + 1);
    bool ok = folder ? file_make_folder(folder, err) : err_memory(err, "the pictures");
    ok = ok && slide_view_make(&page->results.slides[index], page->request->class_map, folder,
                               page->ctx, &page->views[index], err);
    free(folder);
    console_advance(page->ctx->console, 1);
    return ok;
}

static bool picture_all(struct page *page, struct err *err)
{
    size_t n = page->results.n_slides;
    page->views = calloc(n + 1, sizeof *page->views);
    if (!page->views)
        return err_memory(err, "the slides");
    console_begin(page->ctx->console, "report", (int64_t)n, "slides");
    bool ok = pool_for(page->ctx->pool, (int64_t)n, picture_slide, page, page->ctx->stop, err);
    console_end(page->ctx->console);
    return ok;
}

static void put_head(FILE *out, const struct page *page)
{
    html_put(out,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
             "'self' file: data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri "
             "'none'; form-action 'none'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"generator\" content=\"microtome %s\">\n<title>%s</title>\n<style>\n",
             MICROTOME_VERSION, page->request->title);
    fputs(page_style, out);
    html_put(
        out,
        "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#cohort\">Skip to the slides</a>\n"
        "<header><h1>%s</h1>\n",
        page->request->title);
}

static bool write_page(const struct page *page, struct err *err)
{
    struct file_out file;
    if (!file_out_open_in(&file, page->request->output, "index.html", err))
        return false;
    FILE *out = file.stream;
    put_head(out, page);
    page_put_summary(out, page);
    html_put(out, "</header>\n<main>\n");
    page_put_cohort(out, page);
    page_put_curves(out, page);
    if (page->results.n_slides > 0)
        html_put(out, "<section id=\"slides\"><h2>Slides</h2>\n");
    for (size_t i = 0; i < page->results.n_slides; i++)
        slide_view_write(out, &page->results.slides[i], &page->views[i], i + 1);
    if (page->results.n_slides > 0)
        html_put(out, "</section>\n");
    page_put_concepts(out, page);
    page_put_sweeps(out, page);
    page_put_training(out, page);
    page_put_runs(out, page);
    html_put(
        out,
        "</main>\n<footer>Made with microtome %s. For research only, not for diagnosis.</footer>"
        "\n<script>\n",
        MICROTOME_VERSION);
    fputs(page_script, out);
    html_put(out, "</script>\n</body>\n</html>\n");
    return file_out_commit(&file, err);
}

static void count(const struct page *page, struct page_result *out)
{
    const struct results *results = &page->results;
    *out = (struct page_result){ .slides = results->n_slides,
                                 .curves = results->n_curves,
                                 .trainings = results->n_trainings,
                                 .runs = results->n_runs,
                                 .problems = results->problems.n };
    for (size_t i = 0; i < results->n_slides; i++) {
        out->pictured += page->views[i].heat;
        out->problems += page->views[i].problem[0] != '\0';
    }
}

bool page_make(const struct page_request *request, const struct ctx *ctx, struct page_result *out,
               struct err *err)
{
    struct page page = { .request = request, .ctx = ctx };
    struct claim *claim = NULL;
    bool ok = results_read(request->folders, request->n_folders, request->output,
                           request->label_column, &page.results, err) &&
              file_make_folder(request->output, err) && claim_take(request->output, &claim, err) &&
              picture_all(&page, err) && page_write_areas(&page, err) &&
              page_copy_concepts(&page, err) && write_page(&page, err);
    if (ok)
        count(&page, out);
    claim_release(claim);
    for (size_t i = 0; page.views && i < page.results.n_slides; i++)
        slide_view_free(&page.views[i]);
    free(page.views);
    results_free(&page.results);
    return ok;
}
