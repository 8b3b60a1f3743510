/* page_style.h: how the page looks and what its controls do; both stand within the page. */
#ifndef REPORT_PAGE_STYLE_H
#define REPORT_PAGE_STYLE_H

extern const char page_style[];  /* CSS, light and dark, wide and narrow */
extern const char page_script[]; /* sliders, switches, sorting; the page reads well without it */
#endif
