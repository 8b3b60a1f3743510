/* page_put.h: the text of the page of an audit; page.c writes the files. */
#ifndef AUDIT_PAGE_PUT_H
#define AUDIT_PAGE_PUT_H
#include <stdio.h>
#include "audit/study.h"

void page_put_audit(const struct study *study, const char *model, FILE *out);
#endif
