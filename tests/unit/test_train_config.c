/* test_train_config.c: the config of a training: defaults, values, settings, and every kind of
 * mistake, with the line and the words a user gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "tests/unit/support/paths.h"
#include "train/objectives.h"

static bool parse(const char *text, const char *setting, struct train_config *out, struct err *err)
{
    *err = (struct err){ 0 };
    return config_parse(text, strlen(text), "run.yaml", &setting, setting ? 1 : 0, out, err);
}

static void values_are_taken(void **state)
{
    (void)state;
    struct train_config config;
    struct err err;
    const char *text = "seed: 7\n"
                       "classes: [a, b, c]\n"
                       "network: {name: resnet18, padding: valid}\n"
                       "data:\n"
                       "  train: one.h5\n"
                       "  val: [x, y]\n"
                       "  mean: [0.1, 0.2, 0.3]\n"
                       "augment: {flip: false, hsv_noise: 20}\n";
    if (!parse(text, "train.batch=5", &config, &err))
        fail_msg("%s", err.text);
    assert_int_equal(config.seed, 7);
    assert_int_equal(config.classes.n, 3);
    assert_string_equal(config.network.name, "resnet18");
    assert_int_equal(config.network.padding, PADDING_VALID);
    assert_int_equal(config.data.train.n, 1);
    assert_string_equal(config.data.val.items[1], "y");
    assert_true(config.data.mean[2] == 0.3);
    assert_false(config.augment.flip);
    assert_true(config.augment.rotate);
    assert_true(config.augment.hsv_noise == 20);
    assert_int_equal(config.train.batch, 5);
    assert_int_equal(config.train.epochs, 10);
    assert_true(config.schedule.learning_rate == 0.05);
    config_free(&config);
    assert_true(parse("", NULL, &config, &err));
    config_free(&config);
    assert_true(parse("data: {train: a}", "data.train=[b, 'c,d']", &config, &err));
    assert_int_equal(config.data.train.n, 2);
    assert_string_equal(config.data.train.items[1], "c,d");
    config_free(&config);
}

struct mistake {
    const char *text, *setting, *says;
};

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct mistake mistakes[] = {
        { "seed: 1\nnetwork:\n  nam: x\n", NULL,
          "run.yaml:3: no key 'network.nam'; did you mean 'network.name'?" },
        { "xyzzyplugh: 1\n", NULL,
          "run.yaml:1: no key 'xyzzyplugh'; the keys are: seed objective classes network data "
          "augment train "
          "optimizer schedule ranks parallel checkpoint generate distill privacy mine" },
        { "train: {batch: 0}\n", NULL,
          "run.yaml:1: train.batch: '0' is not a whole number from 1 to 65536" },
        { "train: {batch: 1.5}\n", NULL,
          "run.yaml:1: train.batch: '1.5' is not a whole number from 1 to 65536" },
        { "train:\n  clip: .nan\n", NULL,
          "run.yaml:2: train.clip: '.nan' is not a number from 0 to 1000000000" },
        { "optimizer: {name: adamm}\n", NULL,
          "run.yaml:1: optimizer.name: 'adamm' is not one of sgd, adam, adamw, lars; did you mean "
          "adam?" },
        { "augment: {flip: maybe}\n", NULL,
          "run.yaml:1: augment.flip: 'maybe' is not true or false" },
        { "data: 3\n", NULL, "run.yaml:1: 'data' is a section; its keys go below it" },
        { "data:\n  mean: [1, 2]\n", NULL,
          "run.yaml:2: data.mean: 'a list or a section' is not a list of three numbers" },
        { "data:\n  train: {a: b}\n", NULL,
          "run.yaml:2: data.train: 'a list or a section' is not a list of names" },
        { "seed: 1\nseed: 2\n", NULL, "run.yaml:2: 'seed' is given twice" },
        { "parallel: {data: 2}\nranks: {grid: {data: 2}}\n", NULL,
          "run.yaml:2: 'ranks.grid' and 'parallel' are given, but the first is only the former "
          "name of the second; give 'parallel' alone" },
        { "ranks: {grid: {stage: 2}}\nparallel: {bands: 2}\n", NULL,
          "run.yaml:2: 'ranks.grid' and 'parallel' are given, but the first is only the former "
          "name of the second; give 'parallel' alone" },
        { "ranks: {grid: {data: 2, data: 2}}\n", NULL,
          "run.yaml:1: 'ranks.grid.data' is given twice" },
        { "ranks: {grid: {date: 2}}\n", NULL,
          "run.yaml:1: no key 'parallel.date'; did you mean 'parallel.data'?" },
        { "ranks: {grid: 2}\n", NULL,
          "run.yaml:1: 'ranks.grid' is a section; its keys go below it" },
        { "seed: [1\n", NULL, "run.yaml:2: not YAML: did not find expected ',' or ']'" },
        { "- a\n- b\n", NULL, "run.yaml:1: not a mapping of keys to values" },
        { "classes: [one]\n", NULL, "run.yaml: classes: at least two are required" },
        { "train: {memory: half, memory_mb: 100}\n", NULL,
          "run.yaml: train.memory_mb: only train.memory: recompute, stream and auto keep to a "
          "budget; set one of them, or omit train.memory_mb" },
        { "", "train.bach=3", "--set: no key 'train.bach'; did you mean 'train.batch'?" },
        { "", "train.batch", "--set: 'train.batch' is not key=value" },
        { "", "train.batch=x", "--set: train.batch: 'x' is not a whole number from 1 to 65536" },
        { "", "train.batch=", "--set: train.batch: the value is empty" },
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct train_config config;
        struct err err;
        assert_false(parse(mistakes[i].text, mistakes[i].setting, &config, &err));
        assert_string_equal(err.text, mistakes[i].says);
        assert_int_equal(err.kind, ERR_USAGE);
    }
}

static char *printed(void (*print)(FILE *stream))
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    print(memory);
    fclose(memory);
    return text;
}

static char *values_of(const struct train_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    config_print(config, memory);
    fclose(memory);
    return text;
}

/* The template says the defaults, and what config_print writes is read back the same. */
static void template_is_the_defaults(void **state)
{
    (void)state;
    struct train_config defaults, from_template, again;
    struct err err;
    char *text = printed(config_print_template);
    assert_true(parse("", NULL, &defaults, &err));
    if (!parse(text, NULL, &from_template, &err))
        fail_msg("%s", err.text);
    char *a = values_of(&defaults), *b = values_of(&from_template);
    assert_string_equal(a, b);
    config_free(&from_template);
    assert_true(parse(a, "data.patient=it's", &again, &err));
    free(b);
    b = values_of(&again);
    config_free(&defaults);
    assert_true(parse(b, NULL, &defaults, &err));
    assert_string_equal(defaults.data.patient, "it's");
    config_free(&defaults);
    config_free(&again);
    free(a);
    free(b);
    free(text);
}

/* The one section that can be a word. */
static void parallel_auto(void **state)
{
    (void)state;
    static const struct {
        const char *text, *setting;
        bool automatic;
    } cases[] = {
        { "parallel: auto\n", NULL, true },
        { "seed: 1\n", "parallel=auto", true },
        { "seed: 1\n", NULL, false },
        { "parallel: {auto: true}\n", NULL, true },
        { "parallel: auto\n", "parallel.auto=false", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct train_config config;
        struct err err = { 0 };
        assert_true(parse(cases[i].text, cases[i].setting, &config, &err));
        assert_int_equal(config.pipeline.automatic, cases[i].automatic);
        config_free(&config);
    }
    static const char *const wrong[][3] = {
        { "train: auto\n", NULL, "run.yaml:1: 'train' is a section; its keys go below it" },
        { "parallel: best\n", NULL, "run.yaml:1: 'parallel' is a section; its keys go below it" },
        { "seed: 1\n", "train=auto", "--set: no key 'train'" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct train_config config;
        struct err err = { 0 };
        assert_false(parse(wrong[i][0], wrong[i][1], &config, &err));
        assert_memory_equal(err.text, wrong[i][2], strlen(wrong[i][2]));
    }
}

/* The section `parallel` under the name that it had before. */
static void former_names_are_read(void **state)
{
    (void)state;
    struct train_config now, then;
    struct err err = { 0 };
    assert_true(parse("parallel: {data: 2, bands: 3}\n", "parallel.heads=4", &now, &err));
    assert_true(parse("ranks: {grid: {data: 2, bands: 3}}\n", "ranks.grid.heads=4", &then, &err));
    assert_int_equal(then.parallel[GRID_DATA], 2);
    assert_int_equal(then.parallel[GRID_BANDS], 3);
    assert_int_equal(then.parallel[GRID_HEADS], 4);
    assert_memory_equal(then.parallel, now.parallel, sizeof now.parallel);
    assert_true(objective_resolve(&now, &err));
    char *text = config_text(&now);
    assert_true(
        config_same("run", "ranks: {grid: {data: 2, bands: 3, heads: 4}}\n", text, true, &err));
    assert_false(config_same("run", "ranks: {grid: {bands: 3, heads: 4}}\n", text, true, &err));
    assert_true(config_same("run", "ranks: {grid: {bands: 3, heads: 4}}\n", text, false, &err));
    assert_false(
        config_same("run", "ranks: {grid: {data: 2, bands: 2, heads: 4}}\n", text, false, &err));
    free(text);
    config_free(&now);
    config_free(&then);
    assert_true(parse("ranks: {grid: {stage: 3}}\n", "parallel.stage=4", &now, &err));
    assert_int_equal(now.parallel[GRID_STAGE], 4);
    config_free(&now);
}

/* Parts of a patch: rows x columns of ranks, which no other division goes with. */
static void parts_of_patches(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int64_t rows, columns; /* 0: refused */
    } cases[] = { { "2x3", 2, 3 },     { "1x2", 1, 2 },
                  { "3", 1, 3 },       { "1", 1, 1 },
                  { "64x64", 64, 64 }, { "65x1", 0, 0 },
                  { "0x2", 0, 0 },     { "2x", 0, 0 },
                  { "x2", 0, 0 },      { "2x2x2", 0, 0 },
                  { "-1x2", 0, 0 },    { "2 x 2", 0, 0 },
                  { "[2, 2]", 0, 0 },  { "99999999999999999999x1", 0, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct train_config config;
        struct err err = { 0 };
        char setting[80], message[200];
        int64_t grid[GRID_AXES];
        bool list = cases[i].value[0] == '[';
        snprintf(setting, sizeof setting, "parallel.space=%s", cases[i].value);
        snprintf(message, sizeof message,
                 "--set: parallel.space: '%s' is not rows x columns, each from 1 to 64: 2x2",
                 list ? "a list or a section" : cases[i].value);
        bool ok = parse("seed: 1\n", setting, &config, &err);
        assert_string_equal(err.text, cases[i].rows ? "" : message);
        if (!ok)
            continue;
        config_grid(&config, grid);
        assert_int_equal(grid[GRID_BANDS], cases[i].rows);
        assert_int_equal(grid[GRID_SPACE], cases[i].columns);
        config_free(&config);
    }
    static const char *const refused[][2] = {
        { "{space: 2x2, bands: 2}",
          "parallel.bands: cannot be used with parallel.space 2x2: bands divide whole slides, "
          "space divides patches; omit one of them" },
        { "{space: 1x2}\ndata: {slides: a.csv}",
          "data.slides: cannot be used with parallel.space 1x2: whole slides are divided by "
          "parallel.bands" },
        { "{space: 1x2}\nobjective: distill",
          "objective: cannot be used with parallel.space 1x2: the loss of distill compares windows "
          "with the teacher's, which needs whole patches" },
        { "{space: 2}\nranks: {compress: true}",
          "ranks.compress: cannot be used with parallel.space 1x2: omit it" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct train_config config;
        struct err err = { 0 };
        char text[200];
        snprintf(text, sizeof text, "parallel: %s\n", refused[i][0]);
        assert_true(parse(text, NULL, &config, &err));
        assert_false(config_check_space(&config, &err));
        assert_string_equal(err.text, refused[i][1]);
        config_free(&config);
    }
}

/* A run may continue on another grid; older configs have one number. */
static void parts_may_change(void **state)
{
    (void)state;
    struct train_config config;
    struct err err = { 0 };
    int extent[GRID_AXES];
    assert_true(parse("parallel: {space: 2x2}\n", NULL, &config, &err));
    assert_true(objective_resolve(&config, &err));
    char *text = config_text(&config);
    assert_non_null(strstr(text, "  space: 2x2\n"));
    assert_true(config_same("run", "parallel: {space: 1}\n", text, true, &err));
    assert_false(config_extents(&config, 6, extent, &err));
    assert_string_equal(err.text, "parallel: data 0 x stages 1 x space 2x2 x heads 1 does not make "
                                  "6 ranks; data: 0 takes what the others leave");
    assert_true(config_extents(&config, 8, extent, &err));
    assert_int_equal(extent[GRID_DATA], 2);
    free(text);
    config_free(&config);
}

/* Micro-batches of the section `parallel`, and what it refuses. */
static void micro_batches(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t micro, micros; /* 0: refused */
        const char *message;
    } cases[] = {
        { "train: {batch: 6, accumulate: 2}", 6, 2, NULL },
        { "train: {batch: 6, accumulate: 2}\nparallel: {stages: 4, micro_batch: 3}", 3, 4, NULL },
        { "train: {batch: 8}\nparallel: {stages: 4, schedule: master, times: 2}", 2, 4, NULL },
        { "train: {batch: 8}\nparallel: {schedule: mast}", 4, 2, NULL },
        { "train: {batch: 2, accumulate: 6}\nparallel: {stages: 2, schedule: master}", 2, 6, NULL },
        { "train: {batch: 8}\nparallel: {stages: 2, micro_batch: 3}", 0, 0,
          "parallel.micro_batch: 3: the 8 patches of a step (train.batch 8 x train.accumulate 1) "
          "are not a multiple of it" },
        { "train: {batch: 8}\nparallel: {stages: 2, schedule: master, times: 3}", 0, 0,
          "parallel.schedule: master makes 6 micro-batches of a step, but its 8 patches "
          "(train.batch 8 x train.accumulate 1) are not a multiple of that" },
        { "train: {batch: 8}\nparallel: {stages: 2, schedule: mast, times: 2}", 0, 0,
          "parallel.times: 2: mast runs one pair of micro-batches in a step; use "
          "parallel.schedule: master" },
        { "train: {batch: 8}\nparallel: {stages: 2, times: 2}", 0, 0,
          "parallel.times: 2: only the schedules mast and master run pairs of micro-batches, not "
          "1f1b; omit it, or set parallel.schedule: master" },
        { "train: {batch: 8}\nparallel: {stages: 2, schedule: mast, micro_batch: 2}", 0, 0,
          "parallel.micro_batch: 2 makes 4 micro-batches of a step (train.batch 8 x "
          "train.accumulate 1), but mast takes 2; omit it" },
        { "train: {batch: 8}\nparallel: {stages: 2, schedule: master}", 0, 0,
          "parallel.schedule: master takes pairs of micro-batches, but train.batch 8 x "
          "train.accumulate 1 in micro-batches of 8 are 1; set parallel.times or "
          "parallel.micro_batch" },
        { "parallel: {stages: 3, cut: [layer1]}", 0, 0,
          "parallel.cut: 1 layer makes 2 stages, but parallel.stages is 3" },
        { "parallel: {stages: 2}\nranks: {compress: true}", 0, 0,
          "ranks.compress: cannot be used with parallel.stages 2: omit it" },
        { "parallel: {stages: 2}\ndata: {slides: a.csv}", 0, 0,
          "data.slides: cannot be used with parallel.stages 2: whole slides are divided by "
          "parallel.bands; stages are for patches" },
        { "parallel: {stages: 2}\ntrain: {memory: recompute}", 0, 0,
          "train.memory: recompute: cannot be used with parallel.stages 2: use "
          "parallel.recompute" },
        { "parallel: {stages: 2, recompute: true}\ntrain: {store: bf16}", 0, 0,
          "train.store or train.memory: cannot be used with parallel.stages 2: bfloat16 and "
          "parallel.recompute: true save the same memory; omit one of them" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct train_config config;
        struct err err = { 0 };
        assert_true(parse(cases[i].text, NULL, &config, &err));
        bool ok = config_check_parallel(&config, &err);
        assert_string_equal(err.text, cases[i].message ? cases[i].message : "");
        assert_int_equal(ok, cases[i].micro > 0);
        if (ok) {
            assert_int_equal(config_micro_batch(&config), cases[i].micro);
            assert_int_equal(config_micro_batches(&config), cases[i].micros);
        }
        config_free(&config);
    }
}

/* The examples are configs. */
static void examples_are_read(void **state)
{
    (void)state;
    struct train_config config;
    struct err err = { 0 };
    char *path = source_path("examples/idc.yaml");
    if (!config_read(path, NULL, 0, &config, &err))
        fail_msg("%s", err.text);
    assert_string_equal(config.network.name, "resnet18");
    assert_int_equal(config.train.monitor, MONITOR_LAST);
    config_free(&config);
    free(path);
    path = source_path("examples/nuclei.yaml");
    if (!config_read(path, NULL, 0, &config, &err))
        fail_msg("%s", err.text);
    assert_string_equal(config.network.name, "segment_unet");
    config_free(&config);
    free(path);
    path = source_path("examples/pipeline.yaml");
    if (!config_read(path, NULL, 0, &config, &err) || !config_check_parallel(&config, &err))
        fail_msg("%s", err.text);
    assert_int_equal(config.parallel[GRID_STAGE], 4);
    assert_int_equal(config_micro_batches(&config), 8);
    config_free(&config);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parallel_auto),         cmocka_unit_test(values_are_taken),
        cmocka_unit_test(mistakes_are_named),    cmocka_unit_test(template_is_the_defaults),
        cmocka_unit_test(former_names_are_read), cmocka_unit_test(parts_of_patches),
        cmocka_unit_test(parts_may_change),      cmocka_unit_test(micro_batches),
        cmocka_unit_test(examples_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
