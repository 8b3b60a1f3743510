/* evaluate_write.c: an evaluation as JSON and as a table (evaluate.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "likeness/evaluate.h"
#include "likeness/features.h"

#define SHIFTS_PRINTED 5

static const char *class_of(const struct evaluation *evaluation, const struct set_comparison *row)
{
    return row->class_index < 0 ? "all" : evaluation->classes[row->class_index];
}

/* --- JSON --- */

static void put_set(struct json_out *json, const char *key, const struct evaluate_request *request,
                    const struct evaluation *evaluation, int which)
{
    const struct patch_set *set = &evaluation->sets[which];
    if (set->n == 0)
        return;
    json_out_object(json, key);
    json_out_array_line(json, "paths");
    for (size_t i = 0; i < request->n_paths[which]; i++)
        json_out_text(json, NULL, request->paths[which][i]);
    json_out_close_array(json);
    json_out_int(json, "patches", set->n);
    json_out_int(json, "found", set->found);
    json_out_int(json, "of_another_size", set->other_size);
    json_out_int(json, "width_px", set->width);
    json_out_int(json, "height_px", set->height);
    json_out_int(json, "stored_width_px", set->stored_width);
    json_out_int(json, "stored_height_px", set->stored_height);
    json_out_real(json, "mpp", set->mpp > 0 ? set->mpp : NAN);
    json_out_object_line(json, "classes");
    for (int64_t c = 0; c < evaluation->n_classes; c++) {
        int64_t n = 0;
        for (int64_t i = 0; i < set->n; i++)
            n += set->labels[i] == c;
        json_out_int(json, evaluation->classes[c], n);
    }
    json_out_close_object(json);
    json_out_close_object(json);
}

static void put_comparison(struct json_out *json, const struct evaluation *evaluation,
                           const struct set_comparison *row)
{
    json_out_object(json, NULL);
    json_out_text(json, "what", comparison_title(row->kind));
    json_out_text(json, "class", row->class_index < 0 ? NULL : class_of(evaluation, row));
    json_out_array_line(json, "patches");
    json_out_int(json, NULL, row->n[0]);
    json_out_int(json, NULL, row->n[1]);
    json_out_close_array(json);
    json_out_real(json, "frechet", row->frechet);
    json_out_real(json, "frechet_infinity", row->frechet_infinity);
    json_out_real(json, "kernel_distance", row->kernel.mean);
    json_out_real(json, "kernel_distance_std_error", row->kernel.std_error);
    json_out_real(json, "precision", row->neighbours.precision);
    json_out_real(json, "recall", row->neighbours.recall);
    json_out_real(json, "density", row->neighbours.density);
    json_out_real(json, "coverage", row->neighbours.coverage);
    json_out_int(json, "neighbours_of", row->n_neighbours);
    json_out_real(json, "two_sample_auc", row->two_sample.auc);
    json_out_real(json, "two_sample_accuracy", row->two_sample.accuracy);
    json_out_real(json, "two_sample_p", row->two_sample.p);
    json_out_close_object(json);
}

static void put_nuclei(struct json_out *json, const char *key, const struct patch_nuclei *nuclei)
{
    json_out_object(json, key);
    if (nuclei->why_not)
        json_out_text(json, "not_measured", nuclei->why_not);
    json_out_int(json, "patches", nuclei->patches);
    json_out_int(json, "nuclei", nuclei->nuclei);
    json_out_real(json, "per_mm2", nuclei->patches ? nuclei->per_mm2 : NAN);
    for (int f = 0; nuclei->patches > 0 && f < NUCLEUS_FEATURES; f++) {
        json_out_object_line(json, nucleus_features[f].column);
        json_out_real(json, "mean", nuclei->mean[f]);
        json_out_real(json, "std", nuclei->std[f]);
        json_out_close_object(json);
    }
    json_out_close_object(json);
}

static void put_shift(struct json_out *json, const struct evaluate_request *request,
                      const struct feature_shift *shift)
{
    char text[64];
    json_out_object_line(json, NULL);
    json_out_text(json, "feature", evaluate_feature(request, shift->column, text));
    json_out_real(json, "mean_synthetic", shift->mean[0]);
    json_out_real(json, "mean_real", shift->mean[1]);
    json_out_real(json, "std_synthetic", shift->std[0]);
    json_out_real(json, "std_real", shift->std[1]);
    json_out_real(json, "ks", shift->ks);
    json_out_close_object(json);
}

void evaluate_put_json(const struct evaluate_request *request, const struct evaluation *evaluation,
                       FILE *stream)
{
    struct json_out json;
    const struct set_comparison *first = &evaluation->comparisons[0];
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "features", request->model_name ? request->model_name : "57 hand-made");
    if (request->model_name)
        json_out_text(&json, "layer", request->options.layer);
    json_out_int(&json, "n_features", evaluation->sets[SET_REAL].d);
    json_out_int(&json, "seed", (int64_t)request->options.seed);
    json_out_bool(&json, "classes_matched", evaluation->is_matched);
    json_out_int(&json, "neighbours", EVALUATE_NEIGHBOURS);
    json_out_real(&json, "frechet", first->frechet);
    json_out_real(&json, "frechet_infinity", first->frechet_infinity);
    json_out_real(&json, "kernel_distance", first->kernel.mean);
    json_out_real(&json, "auc_trained_on_synthetic", evaluation->transfer[0]);
    json_out_real(&json, "auc_trained_on_training", evaluation->transfer[1]);
    put_set(&json, "synthetic", request, evaluation, SET_SYNTHETIC);
    put_set(&json, "against", request, evaluation, SET_REAL);
    put_set(&json, "train", request, evaluation, SET_TRAIN);
    json_out_array(&json, "comparisons");
    for (int64_t i = 0; i < evaluation->n; i++)
        put_comparison(&json, evaluation, &evaluation->comparisons[i]);
    json_out_close_array(&json);
    json_out_object(&json, "nuclei");
    put_nuclei(&json, "synthetic", &evaluation->sets[SET_SYNTHETIC].nuclei);
    put_nuclei(&json, "real", &evaluation->sets[SET_REAL].nuclei);
    json_out_close_object(&json);
    json_out_array(&json, "shifts");
    for (int64_t i = 0; i < evaluation->sets[SET_REAL].d; i++)
        put_shift(&json, request, &evaluation->shifts[i]);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

/* --- text --- */

static void print_number(FILE *out, double value, int width, int decimals)
{
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, decimals, value);
}

static void print_row(FILE *out, const struct evaluation *evaluation, int class_width,
                      const struct set_comparison *row)
{
    fprintf(out, "%-26s %-*s %6lld %6lld", comparison_title(row->kind), class_width,
            class_of(evaluation, row), (long long)row->n[0], (long long)row->n[1]);
    print_number(out, row->frechet, 8, 3);
    print_number(out, row->frechet_infinity, 8, 3);
    print_number(out, row->kernel.mean, 8, 4);
    print_number(out, row->neighbours.precision, 6, 3);
    print_number(out, row->neighbours.recall, 6, 3);
    print_number(out, row->neighbours.density, 7, 3);
    print_number(out, row->neighbours.coverage, 8, 3);
    print_number(out, row->two_sample.auc, 6, 3);
    fprintf(out, " %8.2g\n", row->two_sample.p);
}

static void print_spread(FILE *out, double mean, double std)
{
    if (isnan(mean))
        fprintf(out, " %20s", "-");
    else
        fprintf(out, " %11.4g +- %5.3g", mean, std);
}

static void print_nuclei(FILE *out, const struct evaluation *evaluation)
{
    const struct patch_nuclei *a = &evaluation->sets[SET_SYNTHETIC].nuclei;
    const struct patch_nuclei *b = &evaluation->sets[SET_REAL].nuclei;
    if (a->why_not || b->why_not) {
        fprintf(out, "nuclei: not compared: %s\n", b->why_not ? b->why_not : a->why_not);
        return;
    }
    fprintf(out, "%-22s %20s %20s\n%-22s %20.0f %20.0f\n", "nuclei", "synthetic", "real", "per mm2",
            a->per_mm2, b->per_mm2);
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        fprintf(out, "%-22s", nucleus_features[f].column);
        print_spread(out, a->mean[f], a->std[f]);
        print_spread(out, b->mean[f], b->std[f]);
        fputc('\n', out);
    }
}

void evaluate_put_text(const struct evaluate_request *request, const struct evaluation *evaluation,
                       FILE *stream)
{
    size_t width = 5;
    char text[64];
    for (int64_t i = 0; i < evaluation->n_classes; i++)
        width = strlen(evaluation->classes[i]) > width ? strlen(evaluation->classes[i]) : width;
    fprintf(stream, "%s: %lld features; patches of %lld x %lld px\n",
            request->model_name ? request->model_name : "hand-made",
            (long long)evaluation->sets[SET_REAL].d, (long long)evaluation->sets[SET_REAL].width,
            (long long)evaluation->sets[SET_REAL].height);
    fprintf(stream, "%-26s %-*s %6s %6s %8s %8s %8s %6s %6s %7s %8s %6s %8s\n", "", (int)width,
            "class", "n", "n", "frechet", "at inf.", "kernel", "prec.", "recall", "density",
            "coverage", "AUC", "p");
    for (int64_t i = 0; i < evaluation->n; i++)
        print_row(stream, evaluation, (int)width, &evaluation->comparisons[i]);
    if (!isnan(evaluation->transfer[0]))
        fprintf(stream, "AUC on the real patches, of a regression trained on synthetic: %.3f\n",
                evaluation->transfer[0]);
    if (!isnan(evaluation->transfer[1]))
        fprintf(stream, "AUC on the real patches, of a regression trained on training:  %.3f\n",
                evaluation->transfer[1]);
    print_nuclei(stream, evaluation);
    fprintf(stream, "features that differ most (mean of synthetic, of real; KS):\n");
    for (int64_t i = 0; i < evaluation->sets[SET_REAL].d && i < SHIFTS_PRINTED; i++) {
        const struct feature_shift *shift = &evaluation->shifts[i];
        fprintf(stream, "  %-24s %7.2f %7.2f %6.2f\n",
                evaluate_feature(request, shift->column, text), shift->mean[0], shift->mean[1],
                shift->ks);
    }
}

bool evaluate_write(const struct evaluate_request *request, const struct evaluation *evaluation,
                    const char *folder, struct err *err)
{
    struct file_out file;
    if (!file_make_folder(folder, err) || !file_out_open_in(&file, folder, "evaluate.json", err))
        return false;
    evaluate_put_json(request, evaluation, file.stream);
    return file_out_commit(&file, err) && evaluate_write_grid(evaluation, folder, err) &&
           evaluate_write_page(request, evaluation, folder, err);
}
