/* test_net_threads.c: training on any number of threads gives the same bits: outputs, gradients of
 * all parameters and running statistics, for networks of every family and with recomputation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/trained_net.h"

#ifdef __SANITIZE_ADDRESS__ /* ten times slower: the code of the networks is in the first ones */
#define NETS(n) ((n) < 2 ? (n) : 2)
#else
#define NETS(n) (n)
#endif

static const int thread_counts[] = { 2, 3, 4, 7, 8 };

struct net {
    const char *name;
    int64_t side, batch;
};

/* The first network on `first` numbers of threads, the others on one each, all numbers in turn. */
static void check(const struct net *nets, size_t n, struct plan_options options, size_t first)
{
    const size_t counts = sizeof thread_counts / sizeof *thread_counts;
    size_t next = 0;
    for (size_t i = 0; i < n; i++) {
        options.threads = 1;
        struct trained_net one = trained_net(nets[i].name, nets[i].side, nets[i].batch, options);
        for (size_t k = 0; k < (i == 0 ? first : 1); k++) {
            options.threads = thread_counts[next++ % counts];
            struct trained_net other =
                trained_net(nets[i].name, nets[i].side, nets[i].batch, options);
            print_message("%s on %d threads\n", nets[i].name, options.threads);
            assert_trained_same(&one, &other);
            trained_net_free(&other);
        }
        trained_net_free(&one);
    }
}

static void threads_change_no_bits(void **state)
{
    (void)state;
    static const struct net nets[] = {
        { "resnet18", 64, 5 },      { "googlenet", 96, 3 },
        { "resnet50", 64, 4 },      { "densenet121", 64, 3 },
        { "inception_v3", 107, 2 }, { "vit_small_patch16_224", 224, 1 },
        { "unet_small", 32, 3 },    { "scan_tiny", 224, 3 },
        { "resnet110_v2", 32, 6 },  { "transformer_encoder", 0, 3 },
    };
    check(nets, NETS(sizeof nets / sizeof *nets), (struct plan_options){ 0 }, 5);
}

static void nor_with_recomputation(void **state)
{
    (void)state;
    static const struct net nets[] = { { "resnet18", 64, 3 },
                                       { "googlenet", 96, 3 },
                                       { "unet_small", 32, 2 } };
    check(nets, NETS(sizeof nets / sizeof *nets),
          (struct plan_options){ .saving = SAVING_RECOMPUTE }, 2);
    check(nets, 1, (struct plan_options){ .saving = SAVING_HALF }, 2);
}

/* Where our own kernels for 3 x 3 convolutions are not used. */
static void nor_with_direct_convolutions(void **state)
{
    (void)state;
    static const struct net nets[] = { { "resnet18", 64, 3 } };
    check(nets, 1, (struct plan_options){ .direct = true }, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_no_bits),
        cmocka_unit_test(nor_with_recomputation),
        cmocka_unit_test(nor_with_direct_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
