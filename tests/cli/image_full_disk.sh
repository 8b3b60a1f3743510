# A large image whose tiles do not fit on the disk, at once or while they are written; a folder that
# may not be written. Errors name the folder and the size, and nothing is left behind.
/usr/bin/python3 -c 'from PIL import Image
Image.effect_mandelbrot((6000, 5700), (-3, -2.5, 2, 2.5), 20).convert("RGB").save("field.jpg")' ||
    { echo "needs python3-pil" >&2; exit 77; }
run() { microtome tissue -q field.jpg -o out --method none --slide-mpp 0.25 "$@"; }
echo "== a limit of the size of files"
mkdir limited
(trap '' XFSZ; ulimit -f 50000; run --cache limited)
ls limited
[ "$(id -u)" -eq 0 ] || { echo "needs root to mount a tmpfs" >&2; exit 77; }
mkdir disk && mount -t tmpfs -o size=60m tmpfs disk 2>/dev/null || { echo "cannot mount a tmpfs" >&2; exit 77; }
trap 'umount disk' EXIT
echo "== a small disk"
run --cache disk/tiles
ls disk/tiles
mount -o remount,size=400m disk
run --cache disk/tiles
ls disk/tiles | sed 's/-[0-9a-f]*\./-HASH./'
echo "== a folder that can only be read, with the tiles in it"
mount -o remount,ro disk
run --cache disk/tiles --overwrite
touch field.jpg
run --cache disk/tiles --overwrite
