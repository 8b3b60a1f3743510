/* jpeg_scans.c: limits the scans of every JPEG decoded in this process. A progressive JPEG may have
 * some 2,000 scans, each as expensive as the whole image: half a minute for one tile.
 *
 * OpenSlide offers no way to limit them, so this file replaces libjpeg's jpeg_start_decompress: the
 * linker finds it first, for our own calls and for those of the shared libraries we use. Encoders
 * write about ten scans; libtiff has the same limit. */
#include <dlfcn.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>

#define MOST_SCANS 100
#define MESSAGE 1000 /* above the numbers of libjpeg's own messages */

static const char *const messages[] = {
    "a JPEG with more than 100 scans, which takes too long to decode"
};

static void count_scans(j_common_ptr jpeg)
{
    if (((j_decompress_ptr)jpeg)->input_scan_number <= MOST_SCANS)
        return;
    jpeg->err->addon_message_table = messages;
    jpeg->err->first_addon_message = jpeg->err->last_addon_message = MESSAGE;
    ERREXIT(jpeg, MESSAGE);
}

boolean jpeg_start_decompress(j_decompress_ptr jpeg)
{
    boolean (*start)(j_decompress_ptr) = NULL;
    *(void **)&start = dlsym(RTLD_NEXT, "jpeg_start_decompress");
    if (!start)
        ERREXIT(jpeg, JERR_NOT_COMPILED);
    if (!jpeg->progress) { /* libtiff has its own */
        jpeg->progress =
            jpeg->mem->alloc_small((j_common_ptr)jpeg, JPOOL_PERMANENT, sizeof *jpeg->progress);
        *jpeg->progress = (struct jpeg_progress_mgr){ .progress_monitor = count_scans };
    }
    return start(jpeg);
}
