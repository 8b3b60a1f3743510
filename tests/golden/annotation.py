#!/usr/bin/python3
"""Writes tests/golden/annotation: drawings in every format and the masks they must give.

The reference knows no geometry library: each pixel centre is tested against each drawn line in
rational arithmetic (winding number not 0; left and top edges inside), and regions are combined
pixel by pixel: any tumour region and no exclusion. A mask file is one line `x_l0 y_l0 step width
height regions repaired ignored` (regions: polygons after merging, -1 if not stated) and then one line
of # and . for each row.
"""
import json
import os
import random
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


def write(name, text, tumour, exclusion, window, facts):
    x_l0, y_l0, step, width, height = window
    with open(os.path.join(FOLDER, name), "w") as out:
        out.write(text)
    with open(os.path.join(FOLDER, name + ".mask"), "w") as out:
        out.write("%r %r %r %d %d %d %d %d\n" % (window + facts))
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


os.makedirs(FOLDER, exist_ok=True)
for case in (asap_case, camelyon17_case, imagescope_case, holes_case, crossing_case, touching_case,
             random_case):
    case()
