/* scaling_plot.c: SVG PNG [TITLE X_LABEL Y_LABEL X_LOW X_HIGH Y_LOW Y_HIGH [log]]: curves from
 * standard input, by default of efficiency in % over the number of ranks; log: x by powers of two.
 * A line is a curve: its name, a tab, "dashed" or "line", a tab, and x y x y .. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plot/curves.h"

#define MAX_CURVES 6
#define MAX_POINTS 64

struct line {
    char text[8192];
    double x[MAX_POINTS], y[MAX_POINTS];
};

static bool read_curve(struct line *line, struct chart_curve *out)
{
    if (!fgets(line->text, sizeof line->text, stdin))
        return false;
    char *kind = strchr(line->text, '\t'), *numbers = kind ? strchr(kind + 1, '\t') : NULL;
    if (!numbers)
        return false;
    *kind++ = 0;
    *out = (struct chart_curve){
        .name = line->text, .x = line->x, .y = line->y, .dashed = strncmp(kind, "dashed", 6) == 0
    };
    for (char *at = numbers + 1, *end; out->n < MAX_POINTS; out->n++) {
        line->x[out->n] = strtod(at, &end);
        if (end == at)
            break;
        line->y[out->n] = strtod(end, &at);
    }
    return out->n > 0;
}

int main(int argc, char **argv)
{
    struct line *lines = calloc(MAX_CURVES, sizeof *lines);
    struct chart_curve curves[MAX_CURVES];
    struct err err = { 0 };
    int n = 0;
    if ((argc != 3 && argc != 10 && (argc != 11 || strcmp(argv[10], "log") != 0)) || !lines)
        return 2;
    while (n < MAX_CURVES && read_curve(&lines[n], &curves[n]))
        n++;
    struct chart chart = { .title = "ResNet-18, 224 px, 16 patches on each rank",
                           .x_label = "ranks",
                           .y_label = "efficiency / %",
                           .curves = curves,
                           .n_curves = n,
                           .x_low = 1,
                           .x_high = 1024,
                           .y_low = 0,
                           .y_high = 100,
                           .log_x = true };
    if (argc >= 10) {
        chart.title = argv[3], chart.x_label = argv[4], chart.y_label = argv[5];
        chart.x_low = strtod(argv[6], NULL), chart.x_high = strtod(argv[7], NULL);
        chart.y_low = strtod(argv[8], NULL), chart.y_high = strtod(argv[9], NULL);
        chart.log_x = argc == 11;
    }
    bool ok = n > 0 && curves_chart(argv[1], argv[2], &chart, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    free(lines);
    return ok ? 0 : 1;
}
