"""Plain images of every kind, made by PIL and tifffile: microtome's pixels must be theirs.

check_images.py MICROTOME FOLDER: writes images to FOLDER and prints one line for each."""
import json
import os
import subprocess
import sys
import zlib

import numpy
import tifffile
from PIL import Image, PngImagePlugin

microtome, folder = sys.argv[1:3]
os.chdir(folder)
rng = numpy.random.default_rng(1)
HEIGHT, WIDTH = 301, 520


def smooth(shape, most=255):
    """Pixels that JPEG keeps: noise of a few px."""
    small = rng.random((shape[0] // 8 + 2, shape[1] // 8 + 2) + shape[2:])
    return (numpy.kron(small, numpy.ones((8, 8) + (1,) * len(shape[2:])))[:shape[0], :shape[1]] * most)


rgb = smooth((HEIGHT, WIDTH, 3)).astype(numpy.uint8)
grey = rgb[..., 0].copy()
alpha = smooth((HEIGHT, WIDTH)).astype(numpy.uint8)
wide = smooth((HEIGHT, WIDTH, 3), 65535).astype(numpy.uint16)


def narrow(a):
    return ((a.astype(numpy.uint32) + 128) // 257).astype(numpy.uint8)


def over_white(colours, a):
    c, a = colours.astype(int), a.astype(int)[..., None]
    return ((c * a + 255 * (255 - a) + 127) // 255).astype(numpy.uint8)


def three(a):
    return numpy.repeat(a[..., None], 3, axis=2)


def chunk(kind, data):
    return len(data).to_bytes(4, 'big') + kind + data + zlib.crc32(kind + data).to_bytes(4, 'big')


def png(name, a, depth, colour, interlaced=False, physical=None):
    """What PIL does not write: 16 bit and interlaced."""
    a = a.astype('>u2') if depth == 16 else a
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
              (0, 1, 1, 2)] if interlaced else [(0, 0, 1, 1)]
    raw = b''.join(b'\0' + row.tobytes() for x, y, dx, dy in passes for row in a[y::dy, x::dx])
    header = WIDTH.to_bytes(4, 'big') + HEIGHT.to_bytes(4, 'big') + bytes([depth, colour, 0, 0, interlaced])
    with open(name, 'wb') as out:
        out.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header))
        if physical:
            out.write(chunk(b'pHYs', physical[0].to_bytes(4, 'big') + physical[1].to_bytes(4, 'big') + b'\1'))
        out.write(chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))


def check(name, expected):
    facts = json.loads(subprocess.run([microtome, 'info', '--json', '--thumbnail', 'seen.png', name], check=True,
                                      stdout=subprocess.PIPE).stdout)[0]
    seen = numpy.array(Image.open('seen.png').convert('RGB'))
    assert facts['vendor'] in ('png', 'jpeg', 'striped-tiff'), facts
    assert (facts['width'], facts['height'], len(facts['levels'])) == (expected.shape[1], expected.shape[0], 1)
    verdict = 'same pixels' if numpy.array_equal(seen, expected) else \
        'OTHER PIXELS, by up to %d' % abs(seen.astype(int) - expected).max() if seen.shape == expected.shape else \
        'OTHER SIZE'
    print(f"{name}: {facts['vendor']}, {facts['mpp'] or 'unknown'} um/px ({facts['mpp_source']}), {verdict}")


image = Image.fromarray(rgb)
image.save('rgb.png')
check('rgb.png', rgb)
image.save('field.PNG', dpi=(101600, 101600))
check('field.PNG', rgb)
image.save('dpi300.png', dpi=(300, 300))
check('dpi300.png', rgb)
Image.fromarray(grey).save('grey.png')
check('grey.png', three(grey))
Image.fromarray(numpy.dstack([rgb, alpha])).save('rgba.png')
check('rgba.png', over_white(rgb, alpha))
Image.fromarray(numpy.dstack([grey, alpha])).save('grey_alpha.png')
check('grey_alpha.png', over_white(three(grey), alpha))
palette = image.quantize(200)
palette.save('palette.png')
check('palette.png', numpy.array(palette.convert('RGB')))
palette16 = image.quantize(16)
palette16.save('palette4bit.png', bits=4)
check('palette4bit.png', numpy.array(palette16.convert('RGB')))
image.convert('1').save('bilevel.png')
check('bilevel.png', three(numpy.array(image.convert('1').convert('L'))))
png('rgb16.png', wide, 16, 2)
check('rgb16.png', narrow(wide))
png('grey16.png', wide[..., 0], 16, 0)
check('grey16.png', three(narrow(wide[..., 0])))
png('interlaced.png', rgb, 8, 2, interlaced=True, physical=(4000000, 4000000))
check('interlaced.png', rgb)
png('interlaced16.png', wide, 16, 2, interlaced=True)
check('interlaced16.png', narrow(wide))

for name, options in (('baseline.jpg', {}), ('full.jpeg', {'subsampling': 0}), ('progressive.jpg', {'progressive': True}),
                      ('dense.JPG', {'dpi': (50800, 50800)}), ('dpi72.jpg', {'dpi': (72, 72)})):
    image.save(name, 'JPEG', quality=90, **options)
    check(name, numpy.array(Image.open(name)))
Image.fromarray(grey).save('grey.jpg', quality=90)
check('grey.jpg', three(numpy.array(Image.open('grey.jpg'))))

for name, a, expected, options in (
        ('none.tif', rgb, rgb, {}),
        ('one_strip.tif', rgb, rgb, {'rowsperstrip': HEIGHT, 'compression': 'zlib', 'predictor': True}),
        ('big_endian.tif', wide, narrow(wide), {'byteorder': '>', 'rowsperstrip': 16, 'compression': 'zlib'}),
        ('bigtiff.tif', wide, narrow(wide), {'bigtiff': True, 'rowsperstrip': 16}),
        ('planes.tif', numpy.moveaxis(rgb, 2, 0).copy(), rgb, {'planarconfig': 'separate', 'rowsperstrip': 16,
                                                               'compression': 'zlib'}),
        ('planes_one_strip.tif', numpy.moveaxis(wide, 2, 0).copy(), narrow(wide),
         {'planarconfig': 'separate', 'rowsperstrip': HEIGHT, 'compression': 'zlib'}),
        ('alpha.tif', numpy.dstack([rgb, alpha]), over_white(rgb, alpha), {'extrasamples': ['unassalpha']}),
        ('micrometre.tif', rgb, rgb, {'resolution': (20000, 20000), 'resolutionunit': 'CENTIMETER'})):
    tifffile.imwrite(name, a, photometric='rgb', metadata=None, **options)
    check(name, expected)
tifffile.imwrite('grey.tif', grey, photometric='minisblack', metadata=None)
check('grey.tif', three(grey))
tifffile.imwrite('grey16_inverted.tif', wide[..., 0], photometric='miniswhite', metadata=None)
check('grey16_inverted.tif', 255 - three(narrow(wide[..., 0])))
palette.save('palette.tif', compression='tiff_lzw')
check('palette.tif', numpy.array(palette.convert('RGB')))
for name, compression in (('lzw.tif', 'tiff_lzw'), ('zstd.tiff', 'zstd'), ('packbits.tif', 'packbits')):
    image.save(name, compression=compression)
    check(name, rgb)
image.save('jpeg.tif', compression='jpeg', quality=90)
check('jpeg.tif', numpy.array(Image.open('jpeg.tif').convert('RGB')))
tifffile.imwrite('imagej.tif', rgb, imagej=True, resolution=(2, 2), metadata={'unit': 'um'})
check('imagej.tif', rgb)
tifffile.imwrite('field.ome.tif', rgb, photometric='rgb', ome=True, rowsperstrip=32,
                 metadata={'axes': 'YXS', 'PhysicalSizeX': 345, 'PhysicalSizeXUnit': 'nm', 'PhysicalSizeY': 0.345,
                           'PhysicalSizeYUnit': '\u00b5m'})
check('field.ome.tif', rgb)

# what is refused: only the message is looked at
os.makedirs('../refused')
os.chdir('../refused')
image.convert('CMYK').save('cmyk.jpg')
image.convert('CMYK').save('cmyk.tif')
exif = Image.Exif()
exif[0x0112] = 6
image.save('rotated.jpg', exif=exif)
tifffile.imwrite('rotated.tif', rgb, photometric='rgb', metadata=None, extratags=[(274, 'H', 1, 3, True)])
tifffile.imwrite('float.tif', grey.astype(numpy.float32), metadata=None)
image.convert('1').save('bits1.tif')
tifffile.imwrite('five.tif', numpy.dstack([rgb, rgb[..., :2]]), photometric='rgb', planarconfig='contig', metadata=None)
tifffile.imwrite('pages.tif', numpy.stack([grey, grey, grey]), photometric='minisblack', metadata=None)
