#!/usr/bin/python3
"""Writes tests/golden/annotation: drawings in every format and the masks they must give.

The reference knows no geometry library: each pixel centre is tested against each drawn line in
rational arithmetic (winding number not 0; left and top edges inside), and regions are combined
pixel by pixel: any tumour region and no exclusion. A mask file is one line `x_l0 y_l0 step width
height regions repaired ignored` (regions: polygons after merging, -1 if not stated), for drawings that
have their own size followed by the slide's width and height, and then one line of # and . for each
row. The slide is named like the drawing, without its extension.
"""
import json
import os
import random
import struct
import zlib
from fractions import Fraction

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "annotation")


def winds(ring, x, y):
    """Winding number of the ring around (x + tiny, y + tinier)."""
    total = 0
    for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1]):
        sign = 1
        if ay > by:
            ax, ay, bx, by, sign = bx, by, ax, ay, -1
        if ay <= y < by and (Fraction(bx) - ax) * (y - ay) <= (Fraction(by) - ay) * (x - ax):
            total += sign
    return total


def polygon(shell, *holes):
    return lambda x, y: winds(shell, x, y) != 0 and not any(winds(h, x, y) for h in holes)


def ellipse(x0, y0, x1, y1):
    def inside(x, y):
        u = (x - Fraction(x0 + x1) / 2) / (Fraction(x1 - x0) / 2)
        v = (y - Fraction(y0 + y1) / 2) / (Fraction(y1 - y0) / 2)
        assert abs(u * u + v * v - 1) > 0.00015, "a pixel centre too near to the ellipse to be fair"
        return u * u + v * v < 1
    return inside


def write(name, text, tumour, exclusion, window, facts, slide=()):
    x_l0, y_l0, step, width, height = window
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(text if isinstance(text, bytes) else text.encode())
    with open(os.path.join(FOLDER, name + ".mask"), "w") as out:
        out.write("%r %r %r %d %d %d %d %d" % (window + facts))
        out.write("".join(" %d" % side for side in slide) + "\n")
        for j in range(height):
            y = Fraction(y_l0 + (j + 0.5) * step)
            row = ""
            for i in range(width):
                x = Fraction(x_l0 + (i + 0.5) * step)
                hit = any(t(x, y) for t in tumour) and not any(e(x, y) for e in exclusion)
                row += "#" if hit else "."
            out.write(row + "\n")


def asap(items, groups):
    lines = ['<?xml version="1.0"?>', "<ASAP_Annotations>", "\t<Annotations>"]
    for number, (kind, group, points) in enumerate(items):
        lines.append('\t\t<Annotation Name="Annotation %d" Type="%s" PartOfGroup="%s" '
                     'Color="#F4FA58">' % (number, kind, group))
        lines.append("\t\t\t<Coordinates>")
        for order, (x, y) in points:
            lines.append('\t\t\t\t<Coordinate Order="%d" X="%s" Y="%s" />' % (order, x, y))
        lines.append("\t\t\t</Coordinates>")
        lines.append("\t\t</Annotation>")
    lines += ["\t</Annotations>", "\t<AnnotationGroups>"]
    for name, parent in groups:
        lines.append('\t\t<Group Name="%s" PartOfGroup="%s" Color="#64FE2E"><Attributes /></Group>'
                     % (name, parent))
    return "\n".join(lines + ["\t</AnnotationGroups>", "</ASAP_Annotations>", ""])


def asap_case():
    first = [(4, 4), (40, 6), (38, 30), (6, 34)]
    second = [(30, 20), (60, 22.25), (56, 58), (28.5, 50)]  # overlaps the first
    hole = [(10, 10), (20, 10), (20, 20), (10, 20)]
    nested = [(12, 12), (18, 12), (18, 18), (12, 18)]  # tumour inside a hole stays a hole
    beyond = [(50, 40), (70, 40), (70, 48), (50, 48)]  # an exclusion that reaches out
    derived = [(2, 44), (20, 44), (20, 60), (2, 60)]   # its group is part of Tumor
    other = [(0, 0), (64, 0), (64, 3), (0, 3)]
    shuffled = list(enumerate(second))
    shuffled = [shuffled[k] for k in (2, 0, 3, 1)]
    items = [("Polygon", "_0", list(enumerate(first))), ("Spline", "_1", shuffled),
             ("Polygon", "_2", list(enumerate(hole))), ("Polygon", "Tumor", list(enumerate(nested))),
             ("Polygon", "Exclusion", list(enumerate(beyond))),
             ("Polygon", "micro", list(enumerate(derived))),
             ("Polygon", "stroma", list(enumerate(other))), ("Dot", "_0", [(0, (62, 62))])]
    groups = [("_0", "None"), ("_1", "None"), ("_2", "None"), ("Tumor", "None"),
              ("Exclusion", "None"), ("micro", "Tumor"), ("stroma", "None")]
    write("groups.xml", asap(items, groups),
          [polygon(p) for p in (first, second, nested, derived)], [polygon(hole), polygon(beyond)],
          (0.0, 0.0, 1.0, 64, 64), (2, 0, 1))


def camelyon17_case():
    lesion = [(5.5, 5.5), (90.5, 8.5), (80.5, 85.5), (9.5, 70.5)]
    normal = [(30.5, 30.5), (60.5, 30.5), (60.5, 60.5), (30.5, 60.5)]
    items = [("Polygon", "metastases", list(enumerate(lesion))),
             ("Polygon", "normal", list(enumerate(normal)))]
    write("camelyon17.xml", asap(items, []), [polygon(lesion)], [polygon(normal)],
          (-4.0, -4.0, 2.0, 52, 48), (1, 0, 0))


def imagescope_case():
    outline = [(10, 10), (120, 14), (110, 100), (20, 90)]
    hole = [(40, 40), (70, 40), (55, 70)]
    text = '<Annotations MicronsPerPixel="0.252">\n'
    text += ' <Annotation Id="1" Name="" ReadOnly="0" Type="4">\n  <Regions>\n'

    def region(kind, negative, points):
        rows = "".join('    <Vertex X="%s" Y="%s" Z="0" />\n' % p for p in points)
        return ('   <Region Id="1" Type="%d" NegativeROA="%d"><Vertices>\n%s   </Vertices></Region>\n'
                % (kind, negative, rows))

    text += region(0, 0, outline) + region(0, 1, hole)
    text += region(1, 0, [(130, 20), (170, 60)])
    text += region(2, 0, [(125.3, 80.1), (185.7, 120.9)])
    text += region(3, 0, [(0, 0), (190, 130)])
    text += "  </Regions>\n </Annotation>\n"
    text += ' <Annotation Id="2" Name="Necrosis"><Regions>\n' + region(0, 0, outline)
    text += " </Regions></Annotation>\n</Annotations>\n"
    box = [(130, 20), (170, 20), (170, 60), (130, 60)]
    write("layers.xml", text,
          [polygon(outline), polygon(box),
           ellipse(Fraction("125.3"), Fraction("80.1"), Fraction("185.7"), Fraction("120.9"))],
          [polygon(hole)], (0.0, 0.0, 2.0, 96, 66), (3, 0, 1))


def feature(geometry, coordinates, name=None, kind="annotation"):
    properties = {"objectType": kind}
    if isinstance(name, list):
        properties["classification"] = {"names": name}
    elif name:
        properties["classification"] = {"name": name, "color": [200, 0, 0]}
    return {"type": "Feature", "id": "00000000-0000-4000-8000-000000000000",
            "geometry": {"type": geometry, "coordinates": coordinates}, "properties": properties}


def closed(ring):
    return [list(p) for p in ring] + [list(ring[0])]


def holes_case():
    shell = [(2, 2), (60, 2), (60, 40), (2, 40)]
    hole = [(10, 10), (50, 10), (50, 30), (10, 30)]
    island = [(20, 15), (30, 15), (30, 25), (20, 25)]  # of another feature, inside the hole
    left = [(4, 45), (24, 45), (14, 62)]
    right = [(30, 45), (62, 45), (62, 62), (30, 62)]
    right_hole = [(40, 50), (50, 50), (45, 58)]
    cut = [(0, 34), (64, 34), (64, 37), (0, 37)]
    features = [feature("Polygon", [closed(shell), closed(hole)], "Tumor"),
                feature("Polygon", [closed(island)], ["Metastasis", "micro"]),
                feature("MultiPolygon", [[closed(left)], [closed(right), closed(right_hole)]]),
                feature("Polygon", [closed(cut)], "Ignore*"),
                feature("Polygon", [closed(shell)], "Stroma"),
                feature("Polygon", [closed(shell)], "Tumor", "detection"),
                feature("Point", [3, 3], "Tumor")]
    write("holes.geojson", json.dumps({"type": "FeatureCollection", "features": features}, indent=1),
          [polygon(shell, hole), polygon(island), polygon(left), polygon(right, right_hole)],
          [polygon(cut)], (0.0, 0.0, 1.0, 64, 64), (5, 0, 2))


def crossing_case():
    bow_tie = [(4, 4), (28, 24), (28, 4), (4, 24)]
    star = [(48, 2), (56, 28), (34, 12), (62, 12), (40, 28)]  # its middle is wound around twice
    overrun = [(4, 34), (30, 34), (30, 60), (4, 60), (4, 34), (10, 30), (36, 40), (8, 50)]
    hole_out = [(40, 34), (60, 34), (60, 60), (40, 60)]
    hole = [(50, 40), (64, 40), (64, 50), (50, 50)]  # a hole that reaches out of its polygon
    features = [feature("Polygon", [closed(bow_tie)]), feature("Polygon", [closed(star)], "tumour"),
                feature("Polygon", [closed(overrun)], "Tumor: Positive"),
                feature("Polygon", [closed(hole_out), closed(hole)])]
    write("crossing.geojson", json.dumps(features),
          [polygon(bow_tie), polygon(star), polygon(overrun), polygon(hole_out, hole)], [],
          (0.0, 0.0, 1.0, 66, 64), (-1, 4, 0))


def touching_case():
    """Edges and corners exactly on pixel centres: none may be counted twice or lost."""
    squares = [[(x, y), (x + 10, y), (x + 10, y + 10), (x, y + 10)]
               for x, y in ((2.5, 2.5), (12.5, 2.5), (12.5, 12.5), (22.5, 22.5))]
    slanted = [[(30.5, 2.5), (50.5, 12.5), (30.5, 12.5)], [(30.5, 2.5), (50.5, 2.5), (50.5, 12.5)]]
    diamond = [(40.5, 20.5), (50.5, 30.5), (40.5, 40.5), (30.5, 30.5)]
    inner = [(40.5, 20.5), (45.5, 30.5), (40.5, 35.5), (35.5, 30.5)]  # touches the outline inside
    text = json.dumps({"positive": [{"name": "p", "vertices": [list(v) for v in p]}
                                    for p in squares + slanted + [diamond]],
                       "negative": [{"name": "n", "vertices": [list(v) for v in inner]}]}, indent=1)
    write("touching.json", text, [polygon(p) for p in squares + slanted + [diamond]],
          [polygon(inner)], (0.0, 0.0, 1.0, 56, 44), (-1, 0, 0))


def random_case():
    draw = random.Random(16)
    tumour = [[(draw.randint(0, 4000) / 16, draw.randint(0, 4000) / 16) for _ in range(draw.choice(
        (3, 4, 5, 7, 9)))] for _ in range(9)]
    exclusion = [[(draw.randint(0, 4000) / 16, draw.randint(0, 4000) / 16) for _ in range(4)]
                 for _ in range(4)]
    features = [feature("Polygon", [closed(p)], "Tumor") for p in tumour]
    features += [feature("Polygon", [closed(p)], "Exclusion") for p in exclusion]
    write("random.geojson", json.dumps(features), [polygon(p) for p in tumour],
          [polygon(p) for p in exclusion], (-3.3, -5.7, 2.61803, 100, 100), (-1, -1, 0))


def cut(shapes, holes):
    """Inside any of the shapes and in none of the holes."""
    return lambda x, y: any(s(x, y) for s in shapes) and not any(h(x, y) for h in holes)


def halo_case():
    """A hole is one of its own layer's: the tumour's is no exclusion, the exclusion's is tumour."""
    outline = [(10, 10), (120.25, 14.125), (110, 100), (20, 90)]
    hole = [(40, 40), (70, 40), (55, 70)]
    beyond = [(100, 20), (140, 20), (140, 40), (100, 40)]
    other = [(45, 45), (60, 45), (60, 60), (45, 60)]  # tumour of another layer, in the hole
    artefact = [(20, 75), (90, 75), (90, 95), (20, 95)]
    inner = [(30, 80), (60, 80), (60, 90), (30, 90)]

    def region(kind, negative, points):
        rows = "".join('          <V X="%s" Y="%s" />\n' % p for p in points)
        return ('      <Region Type="%s" HasEndcaps="0" NegativeROA="%d">\n        <Vertices>\n%s'
                '        </Vertices>\n        <Comments />\n      </Region>\n' % (kind, negative, rows))

    def layer(name, *regions):
        return ('  <Annotation LineColor="65280" Name="%s" Visible="True">\n    <Regions>\n%s'
                '    </Regions>\n  </Annotation>\n' % (name, "".join(regions)))

    text = "<Annotations>\n"
    text += layer("Tumor", region("Polygon", 1, hole), region("Polygon", 0, outline),
                  region("Rectangle", 0, [(170, 60), (130, 20)]), region("Rectangle", 1, [(140, 20), (100, 40)]),
                  region("Ellipse", 0, [("125.3", "80.1"), ("185.7", "120.9")]),
                  region("Ruler", 0, [(0, 0), (190, 130)]))
    text += layer("Metastasis", region("Polygon", 0, other))
    text += layer("Exclusion", region("Polygon", 0, artefact), region("Polygon", 1, inner))
    text += layer("Necrosis", region("Polygon", 0, outline))
    text += layer("Lesion", region("Rectangle", 1, [(0, 0), (200, 200)])) + "</Annotations>\n"
    box = [(130, 20), (170, 20), (170, 60), (130, 60)]
    round_one = ellipse(Fraction("125.3"), Fraction("80.1"), Fraction("185.7"), Fraction("120.9"))
    write("halo.annotations", text,
          [cut([polygon(outline), polygon(box), round_one], [polygon(hole), polygon(beyond)]),
           polygon(other)],
          [cut([polygon(artefact)], [polygon(inner)])], (0.0, 0.0, 2.0, 96, 66), (-1, -1, 2))


def qupath_case():
    """What QuPath 0.2 to 0.6 and scripts around it write for the same things."""
    squares = [[(x, y), (x + 8, y), (x + 8, y + 8), (x, y + 8)] for y in (2, 14, 26) for x in (2, 14, 26, 38)]

    def item(ring, properties, **more):
        made = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [closed(ring)]},
                "properties": properties}
        made.update(more)
        return made

    whole = [(0, 0), (64, 0), (64, 64), (0, 64)]
    other_plane = item(whole, {"objectType": "annotation", "classification": {"name": "Tumor"}})
    other_plane["geometry"]["plane"] = {"c": -1, "z": 3, "t": 0}
    first_plane = item(squares[7], {"objectType": "annotation", "classification": {"name": "Tumor"}})
    first_plane["geometry"]["plane"] = {"c": -1, "z": 0, "t": 0}
    collection = item(squares[8], {"classification": {"name": "Tumor"}})
    collection["geometry"] = {"type": "GeometryCollection", "geometries": [
        {"type": "Polygon", "coordinates": [closed(squares[8])]},
        {"type": "MultiPolygon", "coordinates": [[closed(squares[9])]]}]}
    features = [
        item(squares[0], {"classification": {"name": "Tumor", "colorRGB": -3670016}, "isLocked": False,
                          "measurements": []}, id="PathAnnotationObject"),
        item(squares[1], {"object_type": "annotation", "classification": {"name": "Tumor", "colorRGB": -1},
                          "isLocked": True, "measurements": [{"name": "Area", "value": 64.0},
                                                             {"name": "H-score", "value": float("nan")}]}),
        item(squares[2], {"objectType": "annotation", "name": "a \"NaN\" in text",
                          "classification": {"name": "Tumor", "color": [200, 0, 0]},
                          "measurements": {"Area": 64.0, "Max": float("inf"), "Min": float("-inf")}},
             id="3f0c4f4c-64a8-4b76-8d27-2d9e8b3a0c11"),
        item(squares[3], {"objectType": "annotation", "classification": {"names": ["Tumor", "Positive"]}}),
        item(squares[4], {"classification": "Tumor"}),
        item(squares[5], {"objectType": "somethingNew", "classification": {"name": "tumor"}}),
        item(whole, {"objectType": "root", "childObjects": [
            item(squares[6], {"objectType": "annotation", "classification": {"name": "Tumor"}, "childObjects": [
                item(squares[10], {"objectType": "annotation", "classification": {"name": "Tumor"}}),
                item(squares[6], {"objectType": "cell"}, nucleusGeometry={
                    "type": "Polygon", "coordinates": [closed(squares[11])]})]})]}),
        first_plane, other_plane, collection,
        item(whole, {"classification": None}, id="PathTileObject"),
        item(whole, {"object_type": "tma_core"}),
        item(squares[11], {"objectType": "detection", "classification": {"name": "Tumor"}}),
        {"type": "Feature", "geometry": None, "properties": {"classification": {"name": "Tumor"}}},
    ]
    write("qupath.geojson", json.dumps({"type": "FeatureCollection", "features": features}, indent=1),
          [polygon(p) for p in squares[:11]], [], (0.0, 0.0, 1.0, 64, 64), (11, 0, 6))


def pixels(width, height, seed):
    """A patchwork of class numbers 0 to 3 with holes, bridges and touching corners."""
    draw = random.Random(seed)
    rows = [[0] * width for _ in range(height)]
    for _ in range(12):
        x, y, number = draw.randrange(width), draw.randrange(height), draw.choice((0, 1, 1, 1, 2, 3))
        for j in range(y, min(y + draw.randint(2, height // 2), height)):
            for i in range(x, min(x + draw.randint(2, width // 2), width)):
                rows[j][i] = number
    for _ in range(width):
        rows[draw.randrange(height)][draw.randrange(width)] = draw.choice((0, 1))
    return rows


def where(rows, number, scale):
    def inside(x, y):
        i, j = int(x / scale), int(y / scale)
        return 0 <= x and 0 <= y and j < len(rows) and i < len(rows[0]) and rows[j][i] == number
    return inside


def png(rows, depth, palette=None, interlaced=False):
    """Grey or palette of 1 to 16 bits; interlaced by Adam7."""
    width, height = len(rows[0]), len(rows)

    def packed(row):
        bits = "".join(format(v, "0%db" % depth) for v in row)
        bits += "0" * (-len(bits) % 8)
        return b"\0" + bytes(int(bits[k:k + 8], 2) for k in range(0, len(bits), 8))

    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body +
                struct.pack(">I", zlib.crc32(kind + body) & 0xffffffff))

    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                  (0, 1, 1, 2)]
    data = b"".join(packed(row[x::dx]) for x, y, dx, dy in passes for row in rows[y::dy] if row[x::dx])
    head = struct.pack(">IIBBBBB", width, height, depth, 3 if palette else 0, 0, 0, int(interlaced))
    made = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    if palette:
        made += chunk(b"PLTE", bytes(v for colour in palette for v in colour))
    return made + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def label_cases():
    colours = [(255, 255, 255), (200, 0, 0), (0, 0, 0), (0, 120, 200)]
    for name, depth, palette, interlaced, size, scale, slide, step in (
            ("labels", 8, None, False, (37, 29), 1, (37, 29), 0.5),
            ("labels_palette", 4, colours, False, (33, 21), 4, (133, 82), 2.0),
            ("labels_16bit", 16, None, True, (30, 20), Fraction(100, 30), (100, 67), 1.3)):
        rows = pixels(size[0], size[1], name)
        write(name + ".png", png(rows, depth, palette, interlaced), [where(rows, 1, scale)], [],
              (-1.3, -1.9, step, int(slide[0] / step) + 4, int(slide[1] / step) + 4), (-1, 0, 0), slide)


def runs_down(rows, number):
    """COCO's run lengths: columns one after another, outside first."""
    runs, now = [0], 0
    for x in range(len(rows[0])):
        for row in rows:
            if (row[x] == number) != now:
                runs.append(0)
                now = 1 - now
            runs[-1] += 1
    return runs


def packed_runs(runs):
    """COCO's text for them: from the fourth on differences to the one two before, in groups of five
    bits, lowest first; 32 is added where more follow, and the result to the code of '0'."""
    text = ""
    for i, run in enumerate(runs):
        value = run - runs[i - 2] if i > 2 else run
        while True:
            low = value & 31
            value >>= 5
            more = value != (-1 if low & 16 else 0)
            text += chr(48 + low + (32 if more else 0))
            if not more:
                break
    return text


def coco_case():
    width, height, scale = 40, 33, 3
    first, second = pixels(width, height, "coco 1"), pixels(width, height, "coco 2")
    left = [(1.5, 2.5), (12.5, 3.5), (6.5, 12.5)]
    right = [(20.25, 20.25), (38.25, 20.25), (38.25, 31.25)]
    flat = [v for p in left for v in p], [v for p in right for v in p]
    box = [(25, 1), (36, 1), (36, 9), (25, 9)]
    wrong = [0, 0, 40, 0, 40, 33, 0, 33]
    data = {"info": {"description": "test"}, "images": [
        {"id": 7, "file_name": "other.svs", "width": 10, "height": 10},
        {"id": 3, "file_name": "slides/coco.svs", "width": width, "height": height}],
        "categories": [{"id": 1, "name": "Tumor", "supercategory": "tissue"}, {"id": 2, "name": "Exclusion"},
                       {"id": 9, "name": "Stroma"}],
        "annotations": [
            {"id": 1, "image_id": 3, "category_id": 1, "iscrowd": 0, "segmentation": list(flat),
             "bbox": [0, 0, 40, 33], "area": 1},
            {"id": 2, "image_id": 7, "category_id": 1, "segmentation": [wrong]},
            {"id": 3, "image_id": 3, "category_id": 9, "segmentation": [wrong]},
            {"id": 4, "image_id": 3, "category_id": 1, "iscrowd": 1,
             "segmentation": {"size": [height, width], "counts": runs_down(first, 1)}},
            {"id": 5, "image_id": 3, "category_id": 2,
             "segmentation": {"size": [height, width], "counts": packed_runs(runs_down(second, 1))}},
            {"id": 6, "image_id": 3, "category_id": 1, "segmentation": [], "bbox": [25, 1, 11, 8]},
            {"id": 7, "image_id": 3, "category_id": 1, "keypoints": [1, 2, 2]}]}

    def scaled(ring):
        return polygon([(x * scale, y * scale) for x, y in ring])

    write("coco.json", json.dumps(data, indent=1),
          [scaled(left), scaled(right), scaled(box), where(first, 1, scale)], [where(second, 1, scale)],
          (-2.0, -2.0, 1.0, 126, 106), (-1, 0, 1), (122, 99))


os.makedirs(FOLDER, exist_ok=True)
for case in (asap_case, camelyon17_case, imagescope_case, holes_case, crossing_case, touching_case,
             random_case, halo_case, qupath_case, label_cases, coco_case):
    case()
