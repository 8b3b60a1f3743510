"""Other programs' readers: the levels of a slide as uint8 RGB arrays."""
import ctypes
import ctypes.util
import os
import subprocess

import numpy as np
import tifffile

import files


class OpenSlide:
    """A libopenslide, over white. Its levels are None if it does not open the file, and end at one that it does not
    read."""

    def __init__(self, library):
        lib = self.lib = ctypes.CDLL(library)
        lib.openslide_open.restype = ctypes.c_void_p
        lib.openslide_open.argtypes = [ctypes.c_char_p]
        lib.openslide_close.argtypes = lib.openslide_get_level_count.argtypes = [ctypes.c_void_p]
        lib.openslide_get_version.restype = lib.openslide_get_error.restype = ctypes.c_char_p
        lib.openslide_get_error.argtypes = [ctypes.c_void_p]
        lib.openslide_get_level_dimensions.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p]
        lib.openslide_read_region.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                              ctypes.c_int32, ctypes.c_int64, ctypes.c_int64]
        self.version = lib.openslide_get_version().decode()

    def levels(self, path):
        handle = self.lib.openslide_open(path.encode())
        if not handle:
            return None
        found = []
        for i in range(self.lib.openslide_get_level_count(handle)):
            width, height = ctypes.c_int64(), ctypes.c_int64()
            self.lib.openslide_get_level_dimensions(handle, i, ctypes.byref(width), ctypes.byref(height))
            argb = np.zeros((height.value, width.value), np.uint32)
            self.lib.openslide_read_region(handle, argb.ctypes.data, 0, 0, i, width.value, height.value)
            if self.lib.openslide_get_error(handle):
                break
            parts = [argb >> shift & 255 for shift in (16, 8, 0)]
            found.append((np.stack(parts, 2) + (255 - (argb >> 24))[:, :, None]).astype(np.uint8))
        self.lib.openslide_close(handle)
        return found


def openslide_3():
    name = ctypes.util.find_library("openslide")
    return OpenSlide(name) if name and name.endswith(".so.0") else None


def openslide_4():
    """Of PyPI's package openslide-bin."""
    try:
        import openslide_bin
        return OpenSlide(os.path.join(os.path.dirname(openslide_bin.__file__), "libopenslide.so.1"))
    except ImportError:
        return None


def tifffile_levels(path):
    with tifffile.TiffFile(path) as file:
        return [files.to_8_bits(level.asarray()) for level in file.series[0].levels]


def vips_levels(path, sizes, sub, scratch):
    """Pages, or SubIFDs of the first page; None for one that does not have this size (width, height)."""
    found = []
    for i, (width, height) in enumerate(sizes):
        place = "[subifd=%d]" % (i - 1) if sub else "[page=%d]" % i
        out = os.path.join(scratch, "vips.raw")
        subprocess.run(["vips", "rawsave", path + place, out], check=True, capture_output=True)
        px = np.fromfile(out, np.uint8)
        if px.size == width * height * 6:  # 16 bits
            px = px.view(np.uint16)
        whole = px.size % (width * height) == 0
        found.append(files.to_8_bits(px.reshape(height, width, -1)) if whole else px)
    return found
