#!/usr/bin/env bash
# The image of packaging/Containerfile, built for real by buildah on a base made by mmdebstrap, and used:
# doctor, phantom, extract, predict, train on two ranks, and jobs of SLURM by --site; on Debian 12 with the
# bytes of the program outside. Needs root, both tools, and Debian's mirror; minutes. Exit 77: skipped.
set -u
fail() { echo "FAILED: $1"; exit 1; }
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "images are built as root here"
command -v buildah >/dev/null && command -v mmdebstrap >/dev/null || skip "buildah and mmdebstrap are not installed"
microtome=$(realpath "${MICROTOME:?}") tests=${SOURCE:?}/tests
here=$(realpath "${SCRATCH:?}")/container
image=$here/image
export LC_ALL=C SLURM_CONF=$here/slurm/slurm.conf
down() {
    [ ! -d "$here/slurm" ] || DIR=$here/slurm "$tests/cluster/slurm" down 2>/dev/null
    rm -rf --one-file-system "$image"
}
trap down EXIT
down
rm -rf "$here" && mkdir -p "$image" "$here/bin" && cd "$here" || exit 1
took() { echo "$SECONDS s: $1"; }

buildah() { command buildah --storage-driver vfs --root "$image/storage" --runroot "$image/run" "$@"; }
buildah from --name base scratch >base.log && base=$(buildah mount base) || { cat base.log; fail "an empty container"; }
# No fsync for each file of a package, as in Debian's own images: the image is not kept.
mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --format=directory bookworm "$base" >base.log 2>&1 || {
    ! grep -qiE 'resolve|connect|unreachable|timed out' base.log || skip "Debian's mirror is not reachable"
    tail -n 20 base.log
    fail "the base image"
}
base_mb=$(du -smx "$base" | cut -f1)
buildah commit -q --rm base localhost/debian12 >>base.log || fail "the base image"
took "base image"
buildah bud --isolation chroot --network host --build-arg BASE=localhost/debian12 \
    -f "$SOURCE/packaging/Containerfile" -t microtome "$SOURCE" >build.log 2>&1 || { tail -n 30 build.log; fail "build"; }
buildah from --name run microtome >/dev/null || fail "a container of the image"
root=$(buildah mount run) || fail "mount"
size_mb=$(du -smx "$root" | cut -f1)
took "image built, $size_mb MB, of which the base $base_mb MB"
[ "$size_mb" -lt 500 ] || fail "the image is large"
[ ! -e "$root/usr/bin/gcc" ] && [ ! -e "$root/source" ] || fail "the image holds what only the build needs"
! chroot "$root" dpkg-query -W -f '${Package}\n' | grep -e '-dev$' || fail "the image holds -dev packages"

# A stand-in for Apptainer, which runs the image as `apptainer exec --bind FOLDER IMAGE COMMAND` would:
# the folder under its own path, and the environment of the job.
cat >bin/apptainer <<END
#!/bin/bash
[ "\$1 \$2" = "exec --bind" ] && [ "\$4" = "$here/microtome.sif" ] || { echo "apptainer: \$*" >&2; exit 255; }
bind=\$3 pass=()
shift 4
for name in \${!MICROTOME_@} \${!SLURM_@}; do pass+=(--env "\$name=\${!name}"); done
exec buildah --storage-driver vfs --root "$image/storage" --runroot "$image/run" run --isolation chroot \\
    "\${pass[@]}" -v "\$bind:\$bind" --workingdir "\$PWD" run -- "\$@"
END
chmod +x bin/apptainer
inside() { bin/apptainer exec --bind "$here" "$here/microtome.sif" microtome "$@"; }

[ "$(inside --version)" = "$("$microtome" --version)" ] || fail "another version"
inside doctor >doctor.txt || { cat doctor.txt; fail "doctor found something broken"; }
inside phantom -q -o cohort --slides 4 --size 2048 --seed 1 || fail phantom
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
inside extract -q cohort/slides.csv -o dense --dense --patch 224 --margin 0 >/dev/null || fail extract
inside extract -q cohort/slides.csv -o drawn --random 8 --patch 160 >/dev/null || fail "extract --random"
inside predict -q cohort/slides.csv --network scan_tiny --init-seed 1 --stride 64 -o heat >/dev/null || fail predict
training=(--ranks 2 --set data.train=drawn --set network.input_px=144 --set train.epochs=1 --set train.batch=4)
inside train -q "${training[@]}" --threads 1 -o model >/dev/null || fail "train --ranks"
took "doctor, phantom, extract, predict and train in the image"

same() { # FOLDER OTHER PATTERN: the same files, byte for byte, and some at all
    diff <(cd "$1" && find . -name "$3" -exec sha256sum {} + | sort) <(cd "$2" && find . -name "$3" -exec sha256sum {} + | sort) &&
        [ -n "$(find "$1" -name "$3")" ] || fail "$3 in $1 and $2"
}
. /etc/os-release
if [ "${ID:-} ${VERSION_ID:-}" = "debian 12" ]; then # the same libraries outside
    "$microtome" phantom -q -o cohort_out --slides 4 --size 2048 --seed 1 || fail "phantom outside"
    same cohort cohort_out '*.tiff'
    "$microtome" extract -q cohort/slides.csv -o dense_out --dense --patch 224 --margin 0 >/dev/null || fail "extract outside"
    same dense dense_out '*.h5'
    "$microtome" predict -q cohort/slides.csv --network scan_tiny --init-seed 1 --stride 64 -o heat_out >/dev/null ||
        fail "predict outside"
    same heat heat_out '*.npy'
    took "the same bytes outside"
fi

command -v slurmctld munged unshare >/dev/null || { echo "not tried: --site (SLURM is not installed)"; exit 0; }
DIR=$here/slurm PORT=17950 CPUS=2 "$tests/cluster/slurm" up 1 || { echo "not tried: --site (SLURM does not start)"; exit 0; }
printf 'setup: ["export PATH=%s/bin:$PATH"]\ncontainer: apptainer exec --bind %s %s/microtome.sif\n' "$here" "$here" "$here" >site.yaml
"$microtome" extract -q cohort/slides.csv -o jobs --dense --patch 224 --margin 0 --on slurm --site site.yaml --wait >/dev/null ||
    { tail -n 5 jobs/tasks/log/*; fail "extract --on slurm --site"; }
same dense jobs '*.h5'
"$microtome" train -q "${training[@]}" -o model_job --on slurm --cpus 1 --site site.yaml --wait >/dev/null ||
    { tail -n 5 model_job/tasks/log/*; fail "train --on slurm --site"; }
same model model_job model.safetensors
took "the same bytes by SLURM jobs in the image"
