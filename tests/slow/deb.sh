#!/usr/bin/env bash
# The Debian package: built, installed, run, removed, and nothing of it left. Needs root, and a
# machine on which microtome is not installed already. Exit 77: skipped.
set -u
fail() { echo "$1"; dpkg --purge microtome >/dev/null 2>&1; exit 1; }
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "only root installs packages"
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-dev is not installed"
! dpkg-query -W -f '${db:Status-Status}' microtome 2>/dev/null | grep -q '^installed$' ||
    skip "microtome is installed already"
build=$(dirname "${BINARIES:?}")
work=${SCRATCH:?}/deb
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work" >cpack.log 2>&1 || { cat cpack.log; exit 1; }
package=$(ls "$work"/microtome_*.deb) || fail "no package"
dpkg-deb -f "$package" Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' | sort >depends
for library in libc6 libopenslide0 libhdf5 libdnnl libtiff libgeos-c1; do
    grep -q "^$library" depends || fail "Depends does not name $library: $(tr '\n' ' ' <depends)"
done
! grep -q -- '-dev$' depends || fail "Depends names a -dev package"

dpkg -i "$package" >install.log 2>&1 || { cat install.log; fail "cannot be installed"; }
dpkg -L microtome >files
hash -r
[ "$(command -v microtome)" = /usr/bin/microtome ] || fail "microtome is not on the PATH"
cd "$(mktemp -d -p "$work")" || exit 1
microtome doctor >doctor || { cat doctor; fail "doctor found something broken"; }
microtome phantom -o cohort --slides 1 --size 2048 --quiet || fail "phantom"
microtome extract cohort/slides -o patches --dense --patch 224 --margin 0 --quiet || fail "extract"
[ -n "$(find patches -name '*.h5')" ] || fail "no store"
for command in $(microtome --describe-commands); do
    zcat "/usr/share/man/man1/microtome-$command.1.gz" | grep -q '^.SH OPTIONS' || fail "no man page of $command"
done
bash -n /usr/share/bash-completion/completions/microtome || fail "completion"
[ -s /usr/share/doc/microtome/copyright ] || fail "no copyright file"

dpkg --purge microtome >remove.log 2>&1 || { cat remove.log; fail "cannot be removed"; }
left=0
while read -r file; do
    case $file in *microtome*) ;; *) continue ;; esac # not /usr, /usr/bin, ...
    [ ! -e "$file" ] || { echo "$file is left"; left=1; }
done <"$work/files"
exit "$left"
