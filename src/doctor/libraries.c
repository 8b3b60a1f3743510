/* libraries.c: the libraries microtome depends on, each tried once if that is cheap. */
#include <hdf5.h>
#include <math.h>
#include <openslide.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "doctor/doctor.h"
#include "net/plan/dnnl_version.h"
#include "net/model/model.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"
#include "base/clock.h"

static void look_at_slides(struct doctor_list *list)
{
    struct doctor_finding *found =
        doctor_add(list, "slides", "OpenSlide", DOCTOR_OK, "%s", openslide_get_version());
    bool newer = strtol(openslide_get_version(), NULL, 10) >= 4;
    DOCTOR_MEANS(found,
                 "opens slides that are not plain tiled TIFF: Hamamatsu NDPI and VMS, Leica SCN, "
                 "3DHISTECH MRXS, Ventana, Trestle, Sakura%s",
                 newer ? ", DICOM, Zeiss CZI" : "; DICOM and Zeiss CZI need OpenSlide 4");
    char version[64];
    snprintf(version, sizeof version, "%s", TIFFGetVersion()); /* "LIBTIFF, Version 4.5.0\n..." */
    version[strcspn(version, "\n")] = '\0';
    const char *number = strstr(version, "Version ");
    found = doctor_add(list, "slides", "libtiff", DOCTOR_OK, "%s", number ? number + 8 : version);
    DOCTOR_MEANS(found, "the fast path: tiled TIFF and SVS, each tile decoded once");
}

/* A file in memory, written and read back. */
static bool try_hdf5(void)
{
    int32_t numbers[4] = { 1, 2, 3, 4 }, back[4] = { 0 };
    hsize_t size = 4;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    bool ok = H5Pset_fapl_core(access, 1 << 16, 0) >= 0;
    hid_t file = ok ? H5Fcreate("doctor.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access) : -1;
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t set = file >= 0 ? H5Dcreate2(file, "numbers", H5T_STD_I32LE, space, H5P_DEFAULT,
                                       H5P_DEFAULT, H5P_DEFAULT)
                          : -1;
    ok = set >= 0 && H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0 &&
         H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0 &&
         memcmp(numbers, back, sizeof back) == 0;
    if (set >= 0)
        H5Dclose(set);
    if (file >= 0)
        H5Fclose(file);
    H5Sclose(space);
    H5Pclose(access);
    return ok;
}

static void look_at_hdf5(struct doctor_list *list)
{
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    bool same = major == H5_VERS_MAJOR && minor == H5_VERS_MINOR;
    bool works = same && try_hdf5();
    struct doctor_finding *found =
        doctor_add(list, "slides", "HDF5", works ? DOCTOR_OK : DOCTOR_BROKEN, "%u.%u.%u", major,
                   minor, release);
    DOCTOR_MEANS(found, "patch stores that h5py, CLAM and others can open");
    if (!same)
        DOCTOR_REMEDY(found,
                      "the program was built for %d.%d: rebuild it here (make), or set "
                      "LD_LIBRARY_PATH to that version",
                      H5_VERS_MAJOR, H5_VERS_MINOR);
    else if (!works)
        DOCTOR_REMEDY(found, "a file in memory could not be written and read: reinstall libhdf5");
}

/* One window through a small network with random weights; scores must add up to 1. */
static bool try_network(double *milliseconds, struct err *err)
{
    struct model_source source = { .network = "scan_tiny", .init_seed = 1, .classes = 2 };
    struct model *model = NULL;
    struct model_run run = { 0 };
    struct image image = { 0 };
    double scores[2] = { 0 };
    bool ok = model_open_classifier(&source, &model, err) && image_new(&image, 224, 224, 3, err) &&
              model_classify(model, &run, 1, &image, scores, err); /* warm-up */
    double began = clock_monotonic_s();
    ok = ok && model_classify(model, &run, 1, &image, scores, err);
    *milliseconds = 1e3 * (clock_monotonic_s() - began);
    if (ok && !(fabs(scores[0] + scores[1] - 1) < 1e-6))
        ok = err_set(err, ERR_FORMAT, "scores %g and %g do not add up to 1", scores[0], scores[1]);
    image_free(&image);
    model_run_free(&run);
    model_close(model);
    return ok;
}

static void look_at_networks(struct doctor_list *list)
{
    char version[96];
    kernels_version(version, sizeof version);
    bool fits = kernels_version_fits();
    struct doctor_finding *found =
        doctor_add(list, "networks", "oneDNN", fits ? DOCTOR_OK : DOCTOR_BROKEN, "%s", version);
    DOCTOR_MEANS(found, "runs the networks; the instruction set is chosen at run time");
    if (!fits) {
        DOCTOR_REMEDY(found, "the program was built for another major version: rebuild it here");
        return;
    }
    struct err err = { 0 };
    double ms = 0;
    if (try_network(&ms, &err)) {
        found = doctor_add(list, "networks", "trial", DOCTOR_OK,
                           "scan_tiny scores a 224-px window in %.2g ms", ms);
        DOCTOR_MEANS(found, "networks run here; 'microtome model bench' times the others");
    } else {
        found = doctor_add(list, "networks", "trial", DOCTOR_BROKEN, "%.150s", err.text);
        DOCTOR_MEANS(found, "networks cannot be run or trained");
        DOCTOR_REMEDY(found, "reinstall libdnnl2, or free some memory");
    }
}

void doctor_libraries(struct doctor_list *list)
{
    look_at_slides(list);
    doctor_small_tiff(list);
    look_at_hdf5(list);
    look_at_networks(list);
}
