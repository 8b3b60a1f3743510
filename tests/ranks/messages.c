/* messages.c: groups of ranks and messages in them, on as many ranks as mpirun starts (also 1):
 * every shape of group, large messages in both directions at once, several in flight, pieces,
 * wrong sizes, a rank that fails in a group. With the argument "alone" a rank exits while the
 * others wait for it: mpirun must end them. */
#include <string.h>
#include "check.h"

#define LARGE (1 << 20) /* bytes: far beyond what MPI sends at once */

/* Bytes that say who sent them to whom, and which. */
static unsigned char byte_of(int from, int to, int which, size_t at)
{
    return (unsigned char)(31 * from + 17 * to + 7 * which + (int)(at % 251));
}

static unsigned char *made(int from, int to, int which, size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(from, to, which, i);
    return data;
}

static bool is_made(const unsigned char *data, int from, int to, int which, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != byte_of(from, to, which, i))
            return false;
    return true;
}

/* --- groups --- */

/* Sums, gathers and agreement stay within a group. */
static void try_group(struct ranks *all, struct ranks *group, const int *members)
{
    struct err err = { 0 };
    double sum = all->rank + 1, expected = 0;
    float parts[64] = { 0 }, sums[3] = { 1, (float)all->rank, 2 };
    int64_t begin[65], most = all->rank;
    size_t at[65];
    char *gathered = NULL;
    for (int r = 0; r < group->size; r++) {
        expected += members[r] + 1;
        begin[r] = r;
    }
    begin[group->size] = group->size;
    CHECK(all, members[group->rank] == all->rank && group->world_rank == all->rank);
    CHECK_OK(group, ranks_sum_reals(group, &sum, 1, &err), &err);
    CHECK(group, sum == expected);
    CHECK_OK(group, ranks_start_sum(group, sums, 3, &err), &err);
    CHECK_OK(group, ranks_finish(group, RANKS_ALL, &err), &err);
    CHECK(group, sums[0] == (float)group->size && sums[2] == 2 * (float)group->size);
    CHECK(group, group->size == 1 || sums[1] == (float)expected - (float)group->size);
    CHECK_OK(group, ranks_most(group, &most, 1, &err), &err);
    for (int r = 0; r < group->size; r++)
        CHECK(group, members[r] <= (int)most);
    parts[group->rank] = (float)all->rank;
    CHECK_OK(group, ranks_gather_parts(group, parts, begin, &err), &err);
    CHECK_OK(group, ranks_gather(group, &all->rank, sizeof all->rank, &gathered, at, &err), &err);
    for (int r = 0; r < group->size; r++) {
        CHECK(group, parts[r] == (float)members[r]);
        CHECK(group, memcmp(gathered + at[r], &members[r], sizeof(int)) == 0);
    }
    free(gathered);
    int everyone[64];
    CHECK_OK(group, ranks_gather_equal(group, &all->rank, sizeof(int), everyone, &err), &err);
    CHECK(group, memcmp(everyone, members, (size_t)group->size * sizeof(int)) == 0);
    CHECK_OK(group, ranks_same(group, 7, "numbers", &err), &err);
    CHECK(group, group->local_size == group->size && (group->processors > 0 || all->size == 1));
}

/* Consecutive ranks, every nth rank, the latter in reverse, and all but the first. */
static void try_shapes(struct ranks *all)
{
    for (int n = 1; n <= all->size; n++)
        for (int shape = 0; shape < 4; shape++) {
            struct err err = { 0 };
            struct ranks group, again;
            int members[64], count = 0;
            int colour = shape == 0 ? all->rank / n : shape == 3 ? all->rank > 0 : all->rank % n;
            CHECK_OK(all,
                     ranks_split(all, colour, shape == 2 ? -all->rank : 0, "part", &group, &err),
                     &err);
            for (int i = 0; i < all->size; i++) {
                int r = shape == 2 ? all->size - 1 - i : i;
                int theirs = shape == 0 ? r / n : shape == 3 ? r > 0 : r % n;
                if (theirs == colour)
                    members[count++] = r;
            }
            CHECK(all, group.size == count && group.parent == all);
            try_group(all, &group, members);
            CHECK_OK(all, ranks_split(&group, 0, 0, "again", &again, &err), &err);
            try_group(all, &again, members);
            ranks_free(&again);
            ranks_free(&group);
        }
}

/* --- messages --- */

/* The neighbour at this distance on a line, or on a ring of several ranks. */
static int neighbour(const struct ranks *ranks, int distance, bool ring)
{
    int found = ranks->rank + distance;
    if (ring && ranks->size > 1)
        return (found + ranks->size) % ranks->size;
    return found >= 0 && found < ranks->size ? found : RANKS_NONE;
}

/* Up and down at once; the ends of a line have one neighbour. */
static void try_exchange(struct ranks *ranks, size_t bytes)
{
    struct err err = { 0 };
    for (int turn = 0; turn < 4; turn++) {
        bool ring = turn & 1;
        int step = turn & 2 ? 1 : -1;
        int to = neighbour(ranks, step, ring), from = neighbour(ranks, -step, ring);
        unsigned char *send = made(ranks->rank, to, turn, bytes), *got = calloc(bytes + 1, 1);
        struct ranks_exchange exchange = { to, from, send, bytes, got, bytes };
        CHECK_OK(ranks, ranks_exchange(ranks, &exchange, &err), &err);
        CHECK(ranks,
              from == RANKS_NONE ? got[0] == 0 : is_made(got, from, ranks->rank, turn, bytes));
        free(send);
        free(got);
    }
}

/* Each rank with each: several messages in both directions at once, of all sizes, finished in
 * another order than started, while a sum runs. */
static void try_many(struct ranks *ranks)
{
    static const size_t sizes[] = { 0, 1, 4000, LARGE, 70000, LARGE + 3 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct err err = { 0 };
    float ones[1000];
    for (int i = 0; i < 1000; i++)
        ones[i] = 1;
    CHECK_OK(ranks, ranks_start_sum(ranks, ones, 1000, &err), &err);
    for (int peer = 0; peer < ranks->size; peer++) {
        unsigned char *sent[SIZES], *got[SIZES];
        int64_t sends[SIZES], receives[SIZES];
        if (peer == ranks->rank)
            continue;
        for (int i = 0; i < SIZES; i++) {
            sent[i] = made(ranks->rank, peer, i, sizes[i]);
            got[i] = calloc(sizes[i] + 1, 1);
            CHECK_OK(ranks, ranks_start_send(ranks, peer, sent[i], sizes[i], &sends[i], &err),
                     &err);
        }
        for (int i = 0; i < SIZES; i++)
            CHECK_OK(ranks, ranks_start_receive(ranks, peer, got[i], sizes[i], &receives[i], &err),
                     &err);
        CHECK_OK(ranks, ranks_progress(ranks, &err), &err);
        for (int i = SIZES - 1; i >= 0; i--) {
            CHECK_OK(ranks, ranks_finish(ranks, receives[i], &err), &err);
            CHECK(ranks, is_made(got[i], peer, ranks->rank, i, sizes[i]));
        }
        for (int i = 0; i < SIZES; i++)
            CHECK_OK(ranks, ranks_finish(ranks, sends[i], &err), &err);
        CHECK_OK(ranks, ranks_finish(ranks, receives[0], &err), &err); /* once more: nothing */
        for (int i = 0; i < SIZES; i++)
            free(sent[i]), free(got[i]);
    }
    CHECK_OK(ranks, ranks_finish(ranks, RANKS_ALL, &err), &err);
    for (int i = 0; i < 1000; i++)
        CHECK(ranks, ones[i] == (float)ranks->size);
}

/* The first two ranks: sent in one group then in the other, received the other way round. */
static void try_two_groups(struct ranks *all)
{
    struct err err = { 0 };
    struct ranks a, b;
    CHECK_OK(all, ranks_split(all, 0, 0, "a", &a, &err), &err);
    CHECK_OK(all, ranks_split(all, 0, 0, "b", &b, &err), &err);
    if (all->size > 1 && all->rank < 2) {
        int peer = 1 - all->rank;
        unsigned char *first = made(all->rank, peer, 1, LARGE), *got = calloc(LARGE, 1);
        unsigned char *second = made(all->rank, peer, 2, LARGE), *other = calloc(LARGE, 1);
        CHECK_OK(all, ranks_start_send(&a, peer, first, LARGE, NULL, &err), &err);
        CHECK_OK(all, ranks_start_send(&b, peer, second, LARGE, NULL, &err), &err);
        CHECK_OK(all, ranks_receive(&b, peer, other, LARGE, &err), &err);
        CHECK_OK(all, ranks_receive(&a, peer, got, LARGE, &err), &err);
        CHECK(all, is_made(got, peer, all->rank, 1, LARGE));
        CHECK(all, is_made(other, peer, all->rank, 2, LARGE));
        CHECK_OK(all, ranks_finish(&a, RANKS_ALL, &err), &err);
        CHECK_OK(all, ranks_finish(&b, RANKS_ALL, &err), &err);
        free(first), free(second), free(got), free(other);
    }
    ranks_free(&a);
    ranks_free(&b);
}

/* Cut into many pieces, everything is as it was. */
static void try_pieces(struct ranks *all)
{
    struct err err = { 0 };
    struct ranks group;
    CHECK_OK(all, ranks_split(all, 0, 0, "pieces", &group, &err), &err);
    group.piece = 1000;
    try_exchange(&group, 12345);
    try_exchange(&group, 12000);
    unsigned char *data = made(0, 1, 2, 5001);
    if (all->rank > 0)
        memset(data, 0, 5001);
    CHECK_OK(all, ranks_broadcast(&group, data, 5001, 0, &err), &err);
    CHECK(all, is_made(data, 0, 1, 2, 5001));
    free(data);
    unsigned char *own = made(all->rank, 0, 3, 2500), *every = malloc(2500 * (size_t)all->size);
    CHECK_OK(all, ranks_gather_equal(&group, own, 2500, every, &err), &err);
    for (int r = 0; r < all->size; r++)
        CHECK(all, is_made(every + 2500 * r, r, 0, 3, 2500));
    free(own);
    free(every);
    double reals[2500];
    for (int i = 0; i < 2500; i++)
        reals[i] = i;
    CHECK_OK(all, ranks_sum_reals(&group, reals, 2500, &err), &err);
    for (int i = 0; i < 2500; i++)
        CHECK(all, reals[i] == (double)i * all->size);
    ranks_free(&group);
}

/* --- what must fail --- */

/* Rank 0 sends `sent` bytes, rank 1 expects `expected`. */
static void try_sizes(struct ranks *all, size_t sent, size_t expected, const char *words)
{
    struct err err = { 0 };
    struct ranks group;
    char data[4000] = { 0 }, more[100];
    CHECK_OK(all, ranks_split(all, 0, 0, "sizes", &group, &err), &err);
    group.piece = 1000;
    if (all->rank == 0 && all->size > 1) {
        CHECK_OK(all, ranks_send(&group, 1, data, sent, &err), &err);
    } else if (all->rank == 1) {
        int64_t handle = 0;
        CHECK_OK(all, ranks_start_receive(&group, 0, data, expected, &handle, &err), &err);
        CHECK_OK(all,
                 ranks_start_receive(&group, all->size - 1 == 1 ? 0 : all->size - 1, more,
                                     sizeof more, NULL, &err),
                 &err);
        CHECK(all, !ranks_finish(&group, handle, &err));
        if (!strstr(err.text, words) || !strstr(err.text, "in sizes: the message from rank 0"))
            fprintf(stderr, "%s\n", err.text), exit(1);
    }
    CHECK_OK(all, ranks_agree(all, true, NULL, &err), &err);
    ranks_free(&group);
}

static void try_wrong(struct ranks *all)
{
    struct err err = { 0 };
    struct ranks group;
    char data[4];
    try_sizes(all, 200, 100, "longer than the 100 bytes expected");
    try_sizes(all, 100, 200, "shorter than the 200 bytes expected");
    try_sizes(all, 3000, 2000, "longer than");
    try_sizes(all, 2000, 3000, "shorter than");
    CHECK_OK(all, ranks_split(all, 0, 0, "odd", &group, &err), &err);
    CHECK(all, !ranks_send(&group, all->rank, data, 4, &err));
    CHECK(all, strstr(err.text, "in odd cannot send to itself"));
    CHECK(all, !ranks_receive(&group, all->size, data, 4, &err));
    CHECK(all, strstr(err.text, "cannot receive from rank"));
    if (all->size > 1) {
        CHECK(all, !ranks_broadcast(&group, data, 4, all->size, &err));
        CHECK(all, strstr(err.text, "in odd: broadcast: MPI_ERR_ROOT"));
        /* never sent: freeing the group must not wait for it */
        CHECK_OK(all, ranks_start_receive(&group, all->rank == 0, data, 4, NULL, &err), &err);
    }
    ranks_free(&group);
}

/* A rank of the second half fails: its group knows, and knows who; the other does not. Then all. */
static void try_failure(struct ranks *all)
{
    struct err err = { 0 };
    struct ranks half, whole;
    char words[64];
    bool second = all->rank >= all->size / 2, bad = all->rank == all->size - 1;
    snprintf(words, sizeof words, "rank %d: no tissue", all->size - 1);
    CHECK_OK(all, ranks_split(all, second, 0, "half", &half, &err), &err);
    CHECK_OK(all, ranks_split(all, 0, 0, "whole", &whole, &err), &err);
    if (bad)
        err_set(&err, ERR_FORMAT, "no tissue");
    bool ok = ranks_agree(&half, !bad, NULL, &err);
    CHECK(all, ok == !second);
    CHECK(all, half.failed == (second && half.size > 1));
    CHECK(all,
          !second || half.size == 1 || (strcmp(err.text, words) == 0 && err.kind == ERR_FORMAT));
    CHECK(all, !all->failed || half.size == all->size);
    if (all->size > 1) {
        all->failed = false;
        CHECK(all, !ranks_agree(&whole, ok, NULL, &err));
        CHECK(all, strstr(err.text, "no tissue") && whole.failed && all->failed);
    }
    ranks_free(&half);
    ranks_free(&whole);
}

/* What nobody sends is no longer awaited, and its memory can be freed. */
static void try_abandon(struct ranks *all)
{
    struct ranks group;
    struct err err = { 0 };
    CHECK_OK(all, ranks_split(all, 0, all->rank, "lost", &group, &err), &err);
    char *data = calloc(LARGE, 1);
    CHECK(all, data);
    if (group.size > 1)
        CHECK_OK(
            all,
            ranks_start_receive(&group, (group.rank + 1) % group.size, data, LARGE, NULL, &err),
            &err);
    ranks_abandon(&group);
    free(data);
    CHECK_OK(all, ranks_finish(&group, RANKS_ALL, &err), &err);
    ranks_free(&group);
}

/* The last rank exits alone. One waits for its message, in a group; the others for a sum of all. */
static void leave_alone(struct ranks *all)
{
    struct err err = { 0 };
    struct ranks pairs;
    double sum = 1;
    char data[8];
    CHECK_OK(all, ranks_split(all, all->rank / 2, 0, "pair", &pairs, &err), &err);
    if (all->rank == all->size - 1)
        exit(3);
    if (all->rank == all->size - 2)
        ranks_receive(&pairs, 1, data, sizeof data, &err);
    else
        ranks_sum_reals(all, &sum, 1, &err);
    exit(4); /* never reached: nobody sent or summed */
}

int main(int argc, char **argv)
{
    struct ranks ranks;
    struct err err = { 0 };
    if (!ranks_begin(&ranks, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 77;
    }
    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        leave_alone(&ranks);
    try_shapes(&ranks);
    try_exchange(&ranks, 100);
    try_exchange(&ranks, LARGE);
    try_many(&ranks);
    try_two_groups(&ranks);
    try_pieces(&ranks);
    try_wrong(&ranks);
    try_failure(&ranks);
    try_abandon(&ranks);
    ranks_end(&ranks, true);
    return 0;
}
