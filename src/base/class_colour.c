/* class_colour.c: see class_colour.h. */
#include "base/class_colour.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { BLUE, VERMILLION, GREEN, PURPLE, SKY, YELLOW, ORANGE, BLACK, N_COLOURS };

static const uint8_t palette[N_COLOURS][3] = {
    { 0, 114, 178 },  { 213, 94, 0 },   { 0, 158, 115 }, { 204, 121, 167 },
    { 86, 180, 233 }, { 240, 228, 66 }, { 230, 159, 0 }, { 0, 0, 0 },
};

/* Tumour is reddish and stroma green, as in QuPath; all can be seen on hematoxylin and eosin. */
static const struct {
    const char *name;
    int colour;
} common[] = {
    { "normal", BLUE },    { "tumor", VERMILLION }, { "tumour", VERMILLION }, { "stroma", GREEN },
    { "lymphoid", SKY },   { "lymphocytes", SKY },  { "immune cells", SKY },  { "fat", YELLOW },
    { "adipose", YELLOW }, { "necrosis", BLACK },
};

/* The colour of a common class, -1 for any other name. */
static int common_colour(const char *name)
{
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcasecmp(common[i].name, name) == 0)
            return common[i].colour;
    return -1;
}

/* Round 0 is the palette; then come lighter and darker shades of all of it, in turn. */
static void put_shade(int colour, int64_t round, uint8_t out[3])
{
    for (int i = 0; i < 3; i++) {
        int value = palette[colour][i];
        for (int64_t k = 0; k < (round + 1) / 2; k++)
            value = round % 2 ? (value + 255) / 2 : (3 * value + 40) / 5;
        out[i] = (uint8_t)value;
    }
}

void class_colours(char *const *names, int64_t n, uint8_t (*out)[3])
{
    bool taken[N_COLOURS] = { false }, given[N_COLOURS] = { false };
    for (int64_t c = 0; c < n; c++)
        if (common_colour(names[c]) >= 0)
            taken[common_colour(names[c])] = true;
    int64_t round = 0;
    int next = 0;
    for (int64_t c = 0; c < n; c++) {
        int colour = common_colour(names[c]);
        if (colour >= 0 && !given[colour]) {
            given[colour] = true;
            put_shade(colour, 0, out[c]);
            continue;
        }
        while (next < N_COLOURS && round == 0 && taken[next])
            next++;
        if (next == N_COLOURS)
            next = 0, round++;
        put_shade(next++, round, out[c]);
    }
}
