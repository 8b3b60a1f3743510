#!/usr/bin/env python3
"""Makes docs/images/streaming.svg: how an image goes through a network tile by tile, every cell of every map once.

    docs/images/streaming.py

Left: a row of the image and the maps of three 3-wide convolutions over it, in three tiles. The cells of a tile are
those that can be computed from the pixels up to its end; the cells that the next tile needs again are its strip. Right:
the tiles of an image, forward and backward."""
import os

TILES = ("#9ecae1", "#fdd0a2", "#c7e9c0")
STRIP, INK, DONE, GLASS = "#d62728", "#333333", "#d9e2ec", "#ffffff"
CELL, GAP, CELLS, CUTS = 17, 46, 24, (0, 9, 17, 24)
WIDTH, HEIGHT = 1120, 385
out = []


def text(x, y, words, size=13, anchor="start", colour=INK, weight="normal"):
    out.append(f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
               f'font-weight="{weight}">{words}</text>')


def box(x, y, w, h, fill, stroke=INK, width=1.0, more=""):
    out.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{fill}" stroke="{stroke}" '
               f'stroke-width="{width}" {more}/>')


def prefixes():
    """Of each map, how many cells can be computed from the pixels before each cut: windows of 3, padded by 1."""
    rows = [list(CUTS)]
    for _ in range(3):
        rows.append([CUTS[0], *(p - 1 for p in rows[-1][1:-1]), CELLS])
    return rows


def draw_row_of_maps(left, top):
    rows = prefixes()
    text(left, top - 34, "One row: each tile computes what its pixels allow", 15, weight="bold")
    for m, cuts in enumerate(rows):
        y = top + (3 - m) * GAP
        text(left - 10, y + 13, ("pixels", "map 1", "map 2", "map 3")[m], 13, "end")
        for tile in range(3):
            for x in range(cuts[tile], cuts[tile + 1]):
                box(left + x * CELL, y, CELL, CELL, TILES[tile], "#8a8a8a", 0.6)
        if m < 3:  # the last two cells before a cut are needed again by the tile after it
            for cut, after in zip(cuts[1:-1], rows[m + 1][1:-1]):
                box(left + (after - 1) * CELL, y + 1, (cut - after + 1) * CELL, CELL - 2, "none", STRIP, 2.4)
    y = top + 2 * GAP  # one window, to show why
    middle = rows[2][1]
    out.append(f'<path d="M {left + middle * CELL + CELL / 2} {top + GAP + CELL} L {left + (middle - 1) * CELL} {y} '
               f'M {left + middle * CELL + CELL / 2} {top + GAP + CELL} L {left + (middle + 2) * CELL} {y}" '
               f'stroke="{INK}" stroke-width="1" stroke-dasharray="3 2" fill="none"/>')
    y = top + 4 * GAP + 4
    for tile in range(3):
        middle = (CUTS[tile] + CUTS[tile + 1]) / 2
        text(left + middle * CELL, y, f"tile {tile + 1}", 13, "middle")
    box(left, y + 22, 2 * CELL, CELL - 2, "none", STRIP, 2.4)
    text(left + 2 * CELL + 10, y + 35, "strip: cells of the tile before that the next tile needs again")
    for line, words in enumerate(("The first cell of map 2 in tile 2 needs three cells of map 1 (dashed), two of",
                                  "them from tile 1. They are kept, not computed again: no cell is computed",
                                  "twice, and there is no seam.")):
        text(left, y + 62 + 17 * line, words, 12.5)


def draw_tiles(left, top, title, current, forward):
    side, n = 48, 4
    text(left, top - 34, title, 15, weight="bold")
    for i in range(n * n):
        x, y = left + i % n * side, top + i // n * side
        done = i < current if forward else i > current
        box(x, y, side, side, TILES[1] if i == current else DONE if done else GLASS, "#8a8a8a", 0.8)
        text(x + side / 2, y + side / 2 + 5, i + 1 if forward else n * n - i, 12, "middle", "#555555")
    cx, cy, thick = left + current % n * side, top + current // n * side, 7
    if forward:  # the frontier: below the tiles of the row before, and right of those of this row
        box(left, cy + side - thick, cx - left, thick, STRIP, "none", 0)
        box(cx - thick, cy, thick, side, STRIP, "none", 0)
        box(cx, cy - thick, left + n * side - cx, thick, STRIP, "none", 0)
    else:  # gradients of strips wait above the tiles that are done, and left of those of this row
        box(cx + side, cy - thick, left + n * side - cx - side, thick, STRIP, "none", 0)
        box(cx + side - thick, cy, thick, side, STRIP, "none", 0)
        box(left, cy + side - thick, cx - left + side, thick, STRIP, "none", 0)
    return top + n * side


def main():
    draw_row_of_maps(80, 84)
    x = 590
    bottom = draw_tiles(x, 84, "Forward", 6, True)
    for line, words in enumerate(("Tiles in the order of reading. Red: the", "frontier, the only part of the maps in",
                                  "memory. Its piece for each tile is kept", "or written to a file.")):
        text(x, bottom + 26 + 17 * line, words, 12.5)
    x = 860
    bottom = draw_tiles(x, 84, "Backward", 9, False)
    for line, words in enumerate(("Tiles in reverse. Each is computed a", "second time from its pixels and strips;",
                                  "red: gradients that cells of a strip", "still owe to earlier tiles.")):
        text(x, bottom + 26 + 17 * line, words, 12.5)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "streaming.svg"), "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                   'font-family="Helvetica, Arial, sans-serif">\n'
                   f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n' + "\n".join(out) + "\n</svg>\n")


main()
