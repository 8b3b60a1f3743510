"""What other programs read from the outputs of `microtome predict`: numpy, tifffile, libvips,
shapely, PIL and OpenSlide. Arguments: the slide, the slide's folder of results. Prints one line a
file; any disagreement is an error."""
import csv
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import openslide
import PIL.Image
import shapely.geometry
import tifffile

warnings.filterwarnings("ignore", message="Mean of empty slice")
slide_path, folder = sys.argv[1:]
slide = openslide.OpenSlide(slide_path)
width_l0, height_l0 = slide.dimensions


def output(name):
    return os.path.join(folder, name)


def check(condition, what):
    if not condition:
        sys.exit(f"{what}: not so")


facts = json.load(open(output("heatmap.json")))
names = facts["classes"]
scores = np.load(output("heatmap.npy"))
height, width, n_classes = scores.shape
step = facts["stride"] * facts["downsample"]  # level-0 px of a cell
check(scores.dtype == np.float32 and scores.flags["C_CONTIGUOUS"], "float32 in C order")
check([height, width, n_classes] == [facts["height"], facts["width"], len(names)], "shape")
check([width_l0, height_l0] == [facts["width_l0"], facts["height_l0"]], "size of the slide")
check(0 <= width * step - width_l0 < step + facts["downsample"], "the grid covers the width")
check(0 <= height * step - height_l0 < step + facts["downsample"], "the grid covers the height")
tissue = ~np.isnan(scores[..., 0])
check((np.isnan(scores).any(2) == np.isnan(scores).all(2)).all(), "NaN in all classes or in none")
check(tissue.sum() == facts["scored"] and 0 < facts["scored"], "count of scores")
check(((scores[tissue] >= 0) & (scores[tissue] <= 1)).all(), "scores from 0 to 1")
if n_classes > 1:
    check(np.abs(scores[tissue].sum(1) - 1).max() < 1e-5, "classes sum to 1")
print("heatmap.npy and heatmap.json: numpy")


def halved(plane):
    padded = np.full((plane.shape[0] + plane.shape[0] % 2, plane.shape[1] + plane.shape[1] % 2),
                     np.nan, np.float64)
    padded[: plane.shape[0], : plane.shape[1]] = plane
    fours = padded.reshape(padded.shape[0] // 2, 2, padded.shape[1] // 2, 2)
    return np.nanmean(fours, axis=(1, 3)).astype(np.float32)


def check_tiff():
    with tifffile.TiffFile(output("heatmap.ome.tif")) as tiff:
        check(tiff.is_ome and tiff.is_bigtiff and len(tiff.series) == 1, "one OME series")
        pixels = tifffile.xml2dict(tiff.ome_metadata)["OME"]["Image"]["Pixels"]
        um = facts["mpp"] * facts["stride"]
        check(abs(pixels["PhysicalSizeX"] / um - 1) < 1e-9, "physical size of a cell")
        channels = pixels["Channel"] if n_classes > 1 else [pixels["Channel"]]
        check([channel["Name"] for channel in channels] == names, "names of the channels")
        levels = tiff.series[0].levels
        fine = levels[0].asarray().reshape(n_classes, height, width)
        check(np.array_equal(fine, np.moveaxis(scores, 2, 0), equal_nan=True), "scores in the TIFF")
        for level in levels[1:]:
            fine = np.stack([halved(plane) for plane in fine])
            check(np.allclose(level.asarray().reshape(fine.shape), fine, atol=1e-6, equal_nan=True),
                  "a smaller level")
        print(f"heatmap.ome.tif: tifffile, {len(levels)} levels")
        return len(levels)


def check_vips(n_levels):
    """libvips reads the same planes, and the smallest level."""
    raw = output("vips.raw")
    for c in range(n_classes):
        subprocess.run(["vips", "rawsave", f"{output('heatmap.ome.tif')}[page={c}]", raw], check=True)
        plane = np.fromfile(raw, np.float32).reshape(height, width)
        check(np.array_equal(plane, scores[..., c], equal_nan=True), "scores in libvips")
    if n_levels > 1:
        subprocess.run(["vips", "rawsave", f"{output('heatmap.ome.tif')}[subifd={n_levels - 2}]", raw],
                       check=True)
        check(os.path.getsize(raw) == 4 * np.prod([-(-side // 2 ** (n_levels - 1))
                                                   for side in (height, width)]), "a SubIFD in libvips")
    os.unlink(raw)
    print("heatmap.ome.tif: libvips")


def cells_of(x0, y0, x1, y1):
    """The scores of the cells under a rectangle in level-0 px; the last cells are cut off."""
    columns = slice(round(x0 / step), width if x1 == width_l0 else round(x1 / step))
    rows = slice(round(y0 / step), height if y1 == height_l0 else round(y1 / step))
    return scores[rows, columns]


def check_tile(x0, y0, x1, y1, probabilities):
    check(0 <= x0 < x1 <= width_l0 and 0 <= y0 < y1 <= height_l0, "a tile within the slide")
    want = np.nanmean(cells_of(x0, y0, x1, y1).reshape(-1, n_classes), axis=0)
    check(np.allclose(probabilities, want, atol=1e-6), "the score of a tile")


def check_tiles():
    with open(output("tiles.csv")) as stream:
        rows = list(csv.DictReader(stream))
    check(list(rows[0]) == ["minx", "miny", "width", "height"] + [f"prob_{name}" for name in names],
          "the columns of tiles.csv")
    covered = 0
    for row in rows:
        x, y, w, h = (int(row[key]) for key in ("minx", "miny", "width", "height"))
        check_tile(x, y, x + w, y + h, [float(row[f"prob_{name}"]) for name in names])
        covered += np.isfinite(cells_of(x, y, x + w, y + h)[..., 0]).sum()
    check(covered == facts["scored"], "tiles cover all scores once")
    features = json.load(open(output("tiles.geojson")))["features"]
    check(len(features) == len(rows) == len({feature["id"] for feature in features}), "as many tiles")
    for feature in features:
        polygon = shapely.geometry.shape(feature["geometry"])
        check(polygon.is_valid and feature["properties"]["objectType"] == "tile", "a tile object")
        measured = feature["properties"]["measurements"]
        check_tile(*polygon.bounds, [measured[f"prob_{name}"] for name in names])
    print("tiles.csv and tiles.geojson: csv, shapely")


def check_regions():
    shown = names[-1]
    high = scores[..., -1] >= 0.5
    edges_x = np.minimum(np.arange(width + 1) * step, width_l0)
    edges_y = np.minimum(np.arange(height + 1) * step, height_l0)
    area = np.outer(np.diff(edges_y), np.diff(edges_x))
    found = 0.0
    for feature in json.load(open(output("regions.geojson")))["features"]:
        polygon = shapely.geometry.shape(feature["geometry"])
        properties = feature["properties"]
        check(polygon.geom_type == "Polygon" and polygon.is_valid, "a valid region")
        check(properties["objectType"] == "annotation", "a region is an annotation")
        check(properties["classification"]["name"] == shown, "the class of a region")
        check(abs(properties["measurements"]["area_um2"] / facts["mpp_l0"] ** 2 - polygon.area)
              < 1e-3 * polygon.area, "the area of a region")
        inside = polygon.representative_point()
        check(high[int(inside.y / step), int(inside.x / step)], "a region lies on high scores")
        found += polygon.area
    want = area[high].sum()
    check(abs(found - want) <= 1e-3 * want, "the regions are the cells above the threshold")
    print("regions.geojson: shapely")


def check_overlay():
    picture = PIL.Image.open(output("overlay.png"))
    check(picture.mode == "RGB" and 700 <= picture.width and max(picture.size) < 1900, "the overlay")
    print("overlay.png: PIL")


check_vips(check_tiff())
check_tiles()
check_regions()
check_overlay()
