/* evaluate_confusion_print.c: see evaluate_confusion.h. */
#include "cli/evaluate_confusion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "plot/curves.h"

static int wider(int width, const char *text)
{
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

/* "0.1234", or "-". */
static const char *number(double value, char text[16])
{
    if (isfinite(value))
        snprintf(text, 16, "%.4f", value);
    else
        snprintf(text, 16, "-");
    return text;
}

static void print_counts(FILE *out, const struct confusion *confusion, int width)
{
    const size_t n = confusion->classes.n;
    fprintf(out, "%-*s", width, "truth");
    for (size_t k = 0; k < n; k++)
        fprintf(out, "  %*s", wider(9, confusion->classes.names[k]), confusion->classes.names[k]);
    fputc('\n', out);
    for (size_t row = 0; row < n; row++) {
        fprintf(out, "%-*s", width, confusion->classes.names[row]);
        for (size_t k = 0; k < n; k++)
            fprintf(out, "  %*lld", wider(9, confusion->classes.names[k]),
                    (long long)confusion->counts[row * n + k]);
        fputc('\n', out);
    }
}

void confusion_print_text(FILE *out, const struct confusion *confusion,
                          const struct confusion_measures *m, const char *unit,
                          enum kappa_weights weights)
{
    const struct class_list *classes = &confusion->classes;
    char texts[6][16];
    int width = 5;
    for (size_t k = 0; k < classes->n; k++)
        width = wider(width, classes->names[k]);
    print_counts(out, confusion, width);
    fprintf(out, "\n%-*s  %9s  precision  recall  specificity  F1\n", width, "class", unit);
    for (size_t k = 0; k < classes->n; k++) {
        const struct confusion_class *class = &m->classes[k];
        fprintf(out, "%-*s  %9lld  %-9s  %-6s  %-11s  %s\n", width, classes->names[k],
                (long long)class->truth, number(class->precision, texts[0]),
                number(class->recall, texts[1]), number(class->specificity, texts[2]),
                number(class->f1, texts[3]));
    }
    fprintf(out,
            "\n%lld %s: accuracy %s, balanced accuracy %s, kappa%s%s%s %s, Matthews %s, macro F1 "
            "%s, weighted F1 %s\n",
            (long long)m->n, unit, number(m->accuracy, texts[0]),
            number(m->balanced_accuracy, texts[1]), weights == KAPPA_NONE ? "" : " (",
            weights == KAPPA_NONE ? "" : kappa_weights_names[weights],
            weights == KAPPA_NONE ? "" : " weights)", number(m->kappa, texts[2]),
            number(m->mcc, texts[3]), number(m->macro_f1, texts[4]),
            number(m->weighted_f1, texts[5]));
}

static void json_counts(struct json_out *json, const struct confusion *confusion)
{
    const size_t n = confusion->classes.n;
    json_out_array_line(json, "classes");
    for (size_t k = 0; k < n; k++)
        json_out_text(json, NULL, confusion->classes.names[k]);
    json_out_close_array(json);
    json_out_array(json, "counts");
    for (size_t row = 0; row < n; row++) {
        json_out_array_line(json, NULL);
        for (size_t k = 0; k < n; k++)
            json_out_int(json, NULL, confusion->counts[row * n + k]);
        json_out_close_array(json);
    }
    json_out_close_array(json);
}

void confusion_print_json(struct json_out *json, const struct confusion *confusion,
                          const struct confusion_measures *m, enum kappa_weights weights)
{
    json_counts(json, confusion);
    json_out_array(json, "by_class");
    for (size_t k = 0; k < confusion->classes.n; k++) {
        const struct confusion_class *class = &m->classes[k];
        json_out_object_line(json, NULL);
        json_out_text(json, "class", confusion->classes.names[k]);
        json_out_int(json, "truth", class->truth);
        json_out_int(json, "predicted", class->called);
        json_out_real(json, "precision", class->precision);
        json_out_real(json, "recall", class->recall);
        json_out_real(json, "specificity", class->specificity);
        json_out_real(json, "f1", class->f1);
        json_out_close_object(json);
    }
    json_out_close_array(json);
    json_out_int(json, "n", m->n);
    json_out_real(json, "accuracy", m->accuracy);
    json_out_real(json, "balanced_accuracy", m->balanced_accuracy);
    json_out_real(json, "kappa", m->kappa);
    json_out_text(json, "kappa_weights", kappa_weights_names[weights]);
    json_out_real(json, "matthews", m->mcc);
    json_out_real(json, "macro_f1", m->macro_f1);
    json_out_real(json, "weighted_f1", m->weighted_f1);
}

static void put_real(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.10g", value);
    else
        fputc(',', out);
}

void confusion_print_csv(FILE *out, const struct confusion *confusion,
                         const struct confusion_measures *m)
{
    confusion_put_csv(confusion, out);
    fputs("\nclass,truth,predicted,precision,recall,specificity,f1\n", out);
    for (size_t k = 0; k < confusion->classes.n; k++) {
        const struct confusion_class *class = &m->classes[k];
        csv_write_cell(out, confusion->classes.names[k]);
        fprintf(out, ",%lld,%lld", (long long)class->truth, (long long)class->called);
        put_real(out, class->precision);
        put_real(out, class->recall);
        put_real(out, class->specificity);
        put_real(out, class->f1);
        fputc('\n', out);
    }
    fprintf(out, "\nn,accuracy,balanced_accuracy,kappa,matthews,macro_f1,weighted_f1\n%lld",
            (long long)m->n);
    const double measures[] = { m->accuracy, m->balanced_accuracy, m->kappa,
                                m->mcc,      m->macro_f1,          m->weighted_f1 };
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
        put_real(out, measures[i]);
    fputc('\n', out);
}

static bool write_counts(const char *path, const struct confusion *confusion, struct err *err)
{
    struct file_out file;
    if (!file_out_open(&file, path, err))
        return false;
    confusion_put_csv(confusion, file.stream);
    return file_out_commit(&file, err);
}

bool confusion_draw(const struct evaluate_options *o, const char *ending,
                    const struct confusion *confusion, struct err *err)
{
    if (!o->plot)
        return true;
    char *svg = text_format("%s%s.svg", o->plot, ending);
    char *png = text_format("%s%s.png", o->plot, ending);
    char *csv = text_format("%s%s_counts.csv", o->plot, ending);
    bool ok =
        ((svg && png && csv) || err_memory(err, o->plot)) && write_counts(csv, confusion, err) &&
        curves_confusion(svg, png, confusion->counts, (const char *const *)confusion->classes.names,
                         (int64_t)confusion->classes.n, err);
    free(svg), free(png), free(csv);
    return ok;
}
