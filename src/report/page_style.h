/* page_style.h: the look of the page and the behaviour of its controls; both are embedded in the
 * page. */
#ifndef REPORT_PAGE_STYLE_H
#define REPORT_PAGE_STYLE_H

extern const char page_style[];  /* CSS, light and dark, wide and narrow */
extern const char page_script[]; /* sliders, switches, sorting; the page is readable without it */
#endif
