/* agreement.h: two label images of one picture, the truth and a result -> how well they agree,
 * nucleus by nucleus. Counts and sums can be added over images. */
#ifndef NUCLEI_AGREEMENT_H
#define NUCLEI_AGREEMENT_H
#include "nuclei/nuclei.h"

/* Two nuclei match if they share more than half of their union (IoU > 0.5): each then has one
 * partner at most. */
struct nuclei_agreement {
    int64_t n_truth, n_found, n_matched;
    double matched_iou;   /* sum over the matches */
    double intersections; /* of AJI, in px */
    double unions;
};

/* The labels are from 1 to n in each; those without pixels are not counted. Both images have the
 * same size. Adds to *sum, which begins as zeros. Time and memory are proportional to the pixels
 * and the labels. */
bool nuclei_agreement_add(const struct nuclei_labels *truth, const struct nuclei_labels *found,
                          struct nuclei_agreement *sum, struct err *err);

/* 2 matched / (truth + found). NaN if there are no nuclei in either. */
double nuclei_f1(const struct nuclei_agreement *a);
/* The aggregated Jaccard index (Kumar et al. 2017): each nucleus of the truth is paired with the
 * found one of the highest IoU, which may be the partner of several; intersections over unions of
 * all pairs, to which the found ones that no one chose are added. NaN likewise. */
double nuclei_aji(const struct nuclei_agreement *a);
/* Panoptic quality (Kirillov et al. 2019): sum of IoU of the matches / (matched + half of the
 * unmatched of both). NaN likewise. */
double nuclei_pq(const struct nuclei_agreement *a);
#endif
