/* phantom_annotation.c: see phantom_annotation.h. */
#include "phantom/phantom_annotation.h"

#include <math.h>
#include <stdio.h>
#include "base/file.h"

static const double tau = 6.283185307179586;

static void write_polygon(FILE *stream, int number, int group, const struct phantom_curve *curve)
{
    static const char *const colors[] = { "#F4FA58", "#F4FA58", "#64FE2E" };
    double around_px = tau * (double)(curve->half_long + curve->half_short) / 2;
    int n = (int)fmin(fmax(around_px / 30, 24), 800);
    fprintf(stream,
            "\t\t<Annotation Name=\"Annotation %d\" Type=\"Polygon\" PartOfGroup=\"_%d\" "
            "Color=\"%s\">\n\t\t\t<Coordinates>\n",
            number, group, colors[group]);
    for (int i = 0; i < n; i++) {
        double x, y;
        phantom_curve_point(curve, tau * i / n, &x, &y);
        fprintf(stream, "\t\t\t\t<Coordinate Order=\"%d\" X=\"%.2f\" Y=\"%.2f\" />\n", i, x, y);
    }
    fputs("\t\t\t</Coordinates>\n\t\t</Annotation>\n", stream);
}

bool phantom_annotation_write(const char *path, const struct phantom_scene *scene, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("<?xml version=\"1.0\"?>\n<ASAP_Annotations>\n\t<Annotations>\n", out.stream);
    int number = 0;
    for (int i = 0; i < scene->n_lesions; i++)
        write_polygon(out.stream, number++, i % 2, &scene->lesions[i].outline);
    for (int i = 0; i < scene->n_lesions; i++)
        if (scene->lesions[i].has_hole)
            write_polygon(out.stream, number++, 2, &scene->lesions[i].hole);
    fputs("\t</Annotations>\n\t<AnnotationGroups>\n", out.stream);
    static const char *const colors[] = { "#00ff00", "#00ff00", "#64FE2E" };
    for (int group = 0; group < 3; group++)
        fprintf(out.stream,
                "\t\t<Group Name=\"_%d\" PartOfGroup=\"None\" Color=\"%s\">\n"
                "\t\t\t<Attributes />\n\t\t</Group>\n",
                group, colors[group]);
    fputs("\t</AnnotationGroups>\n</ASAP_Annotations>\n", out.stream);
    return file_out_commit(&out, err);
}
