#!/usr/bin/env bash
# The program built against OpenSlide 4 of PyPI (scripts/openslide4): the files that use OpenSlide are
# compiled against that prefix and linked with all others of this build. It passes the tests of slides
# and opens DICOM. CZI: there is no file of it that could be made here, only its error is seen.
set -eu
binaries=$(dirname "${BINARIES:?}") work=${SCRATCH:?}/openslide4
rm -rf "$work" && mkdir -p "$work"
version=$("${SOURCE:?}/scripts/openslide4" "$work/prefix") || { echo "skipped: OpenSlide 4 cannot be had"; exit 77; }
case $version in 4.*) ;; *) echo "skipped: PyPI has OpenSlide $version"; exit 77 ;; esac
PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig cmake -G Ninja -S "$SOURCE" -B "$work/build" -DMICROTOME_TESTS=OFF \
    -DMICROTOME_SANITIZE="$(sed -n 's/^MICROTOME_SANITIZE:[A-Z]*=//p' "$binaries/CMakeCache.txt")" \
    -DCMAKE_BUILD_TYPE="$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$binaries/CMakeCache.txt")" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; exit 1; }
grep -q "Found openslide, version $version" "$work/log"
objects=()
for source in $(cd "$SOURCE" && grep -rlE '<openslide.h>|slide_private.h' src --include='*.c'); do
    objects+=("CMakeFiles/microtome_core.dir/$source.o")
done
ninja -C "$work/build" "${objects[@]}" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }

link() { # TARGET: as in this build, but with these objects and this library
    command=$(ninja -C "$binaries" -t commands "$1" | tail -n 1)
    name=$(basename "$1")
    command=$(printf '%s' "$command" | sed -E "s#[^ ]*/libopenslide\.so[^ ]*#$work/prefix/lib/libopenslide.so#;
        s# -o $1 # -o $work/$name -Wl,-rpath,$work/prefix/lib ${objects[*]/#/$work/build/} #")
    (cd "$binaries" && eval "$command") && ldd "$work/$name" | grep -q "$work/prefix/lib/libopenslide.so.1"
}
for target in microtome tests/read_level tests/test_slide tests/test_band tests/test_tiff; do
    link "$target"
done
for test in test_slide test_band test_tiff; do
    echo "--- $test"
    SCRATCH=$work "$work/$test" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
done

cd "$work"
./microtome doctor >doctor || true # of the machine, not of this test
grep -A1 "OpenSlide  *$version" doctor | grep -q 'DICOM, Zeiss CZI$'
/usr/bin/python3 -c 'import numpy, PIL' 2>/dev/null || { echo "DICOM is not tried: needs python3-numpy and python3-pil"; exit 0; }
/usr/bin/python3 "$SOURCE/tests/formats/make_dicom.py" dicom 1.2.826.0.1.3680043.8.498.1
mv dicom/drawn.png .
./microtome info dicom/level0.dcm | tee info
grep -q "vendor  *dicom" info
grep -q '768 x 512 px' info
grep -q "384 x 256 px, downsample 2, .*through OpenSlide $version: " info
grep -q '0.5' info
mkdir levels && ./read_level dicom/level0.dcm levels
/usr/bin/python3 - <<'END'
import numpy
from PIL import Image
drawn = numpy.asarray(Image.open("drawn.png")).astype(int)
read = numpy.fromfile("levels/0.rgb", numpy.uint8).reshape(drawn.shape)
worst = abs(drawn - read).mean()
assert worst < 3, worst
print(f"pixels of DICOM: mean difference {worst:.2f} (JPEG)")
END
cp dicom/level0.dcm damaged.dcm && truncate -s 2000 damaged.dcm
if ./microtome tissue damaged.dcm -o masks >/dev/null 2>error; then echo "a damaged DICOM is read"; exit 1; fi
grep 'damaged.dcm: .*level 0, tile' error
printf ZISRAWFILE_ >empty.czi
if ./microtome info empty.czi 2>error; then echo "an empty CZI opens"; exit 1; fi
grep 'empty.czi: ' error
echo "CZI is not tried: no such slide is at hand"

# The program of this build, with an older OpenSlide, names what it needs.
case $("${MICROTOME:?}" doctor | sed -n 's/.*OpenSlide  *//p' | head -n 1) in
3.*)
    if "$MICROTOME" info dicom/level0.dcm 2>error; then echo "DICOM opens with OpenSlide 3"; exit 1; fi
    grep 'DICOM, which needs OpenSlide 4' error
    ;;
esac
