/* step.h: the parts of a tape. A slot is a piece of memory with a lifetime; a step is one kernel
 * call on slots. Ops turn nodes into steps through the functions below; memory.c then decides which
 * slots share memory, and the steps are bound to addresses once. Internal to src/net. */
#ifndef NET_PLAN_STEP_H
#define NET_PLAN_STEP_H
#include "net/kernels/stored.h"
#include "net/plan/plan.h"

/* The memory layout of a tensor. BLOCKED is for images: [N, C/b, H, W, b] with b = tape->block and
 * C rounded up to whole blocks; the channels that were added are 0 and must stay so. */
enum layout { LAYOUT_PLAIN, LAYOUT_BLOCKED, LAYOUTS };

/* How a tensor lies in memory and how its elements are kept. The channels that BLOCKED adds stand
 * for 0 in any dtype. */
struct form {
    enum layout layout;
    enum dtype dtype;
};
#define FLOATS(layout_) ((struct form){ layout_, DTYPE_FLOAT32 })

enum slot_home {
    SLOT_ARENA,   /* placed by lifetime */
    SLOT_KEPT,    /* in the arena, for the whole life of the tape */
    SLOT_WEIGHTS, /* parameters in a kernel's layout, for the whole life of the tape */
    SLOT_OUTSIDE, /* memory owned elsewhere: parameters, gradients of parameters */
};

#define NO_SLOT (-1)

/* A piece of memory. Invariants: following `root` ends at a slot that is its own root, whose home
 * counts for all its parts, and a part lies within it: offset + bytes <= the root's bytes. While a
 * tape is made, slots are only added, never removed or renumbered; `first` and `last` are found by
 * memory.c, `at` is set once by it, and changes only by tape_move. No two roots in the arena whose
 * steps [first, last] overlap share an address. A step may rely on the contents of a slot in the
 * arena only if a step before it in the same run has written it, or if it is SLOT_KEPT. */
struct slot {
    size_t bytes;
    enum slot_home home;
    int first, last; /* steps that touch it first and last */
    int root;        /* the slot whose memory it uses; itself if its own */
    size_t offset;   /* in the root's memory */
    size_t arena_offset;
    char *at; /* after binding */
    /* SLOT_WEIGHTS that plans may share: their source, and which layout */
    struct buffer *source; /* NULL: not shared */
    uint64_t key;
    struct plan_weights_entry *entry;
};

enum access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_BOTH = 3 };

enum step_phase {
    PHASE_PREPARE, /* parameters into the kernels' layouts: once (prepares_once) */
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_JOIN, /* behind the backward pass: gradients of units are summed (plan_join_units) */
};

/* How memory sharing may treat a step. */
enum step_sharing {
    SHARING_NONE,
    SHARING_IN_PLACE, /* slot[to] may be the memory of slot[from] or slot[from_too], if it ends here
                       */
    SHARING_COPY,     /* copies slot[from] to slot[to] + copy_offset: may be omitted altogether */
};

/* What peers are told in several steps, between which others may run. Behind a start or a turn
 * messages are under way, which read and write the slots of these steps until the end; each has the
 * same number of starts and ends. */
enum step_message { MESSAGE_NONE, MESSAGE_START, MESSAGE_TURN, MESSAGE_END };

#define STEP_SLOTS 13

/* One kernel call. Invariants: `run` touches only the memory of its slots, as `access` says: with
 * ACCESS_WRITE it does not read what was there, with ACCESS_BOTH it does. It depends on nothing
 * else but its state (and the tape's random numbers), so that running it again on the same floats
 * gives the same bits; unless `copy` is set it does not change the state. It does not allocate.
 * Steps run in the order of the tape. */
struct step {
    const char *kernel; /* for people: "conv jit:avx512_core" */
    int32_t node;       /* -1: none */
    enum step_phase phase;
    int n_slots;
    int slot[STEP_SLOTS]; /* NO_SLOT: absent */
    enum access access[STEP_SLOTS];
    void *at[STEP_SLOTS]; /* the slots' memory; NULL where absent */
    /* False with the reason if it fails; the caller adds the layer and the kernel to it. */
    bool (*run)(const struct step *step, struct err *err);
    void (*bind)(struct step *step); /* NULL: `at` is all it needs */
    void (*destroy)(void *state);    /* NULL: free */
    /* Gives `to` its own copy of the state of `from`. NULL: the step only reads its state, so
     * copies of the step may borrow it. */
    bool (*copy)(const struct step *from, struct step *to, struct err *err);
    void *state;
    bool borrowed; /* the state is another step's */
    /* It talks to peers: all of them run it, in the same order and once in a pass. So it is never
     * repeated to save memory; what it gives in the forward pass is kept instead. Others may write
     * that only before it. */
    bool talks;
    enum step_message message;
    const struct plan_peers *peers; /* of a message: who */
    /* It runs for one unit of the batch after another (step_each_unit). */
    int64_t units;
    size_t unit_bytes[STEP_SLOTS];
    bool statistics;   /* updates running statistics: not run while the tape holds them */
    bool only_weights; /* backward: leads to gradients of parameters only (tape_mark_weights); found
                        * if the pass is split or measured, or sums run meanwhile */
    enum step_sharing sharing;
    int from, from_too, to; /* indices into slot[]; -1: none */
    size_t copy_offset;     /* bytes */
    bool dropped;           /* by memory sharing */
    double flops;
    double seconds; /* the shortest run */
    int64_t runs;
};

/* What the tape knows about a value of the graph. Invariants: behind the node that makes it, the
 * slot of its native form exists, and those of other forms have the same numbers; a stored dtype
 * (not float32) is that of the graph's convert. wants_gradient never goes back to false. `gradient`
 * is complete when all nodes that read the value were planned backward, which is when its own node
 * is. Learnt parameters have grad_slot instead, where every contribution is added at once. */
struct value_state {
    struct form native;        /* the form it is computed in */
    int slot[LAYOUTS][DTYPES]; /* its slot in each form; NO_SLOT: none (yet) */
    bool wants_gradient;       /* a learnt parameter, or computed from one */
    int gradient;              /* its sum so far: floats, in the native layout; NO_SLOT: none yet */
    bool keep;                 /* must stay readable */
    bool again;                /* made again where the backward pass needs it first */
    int ready;                 /* index after the step that completes it */
    int64_t grad_offset;       /* learnt parameters: in tape->gradients, floats; else -1 */
    int grad_slot;             /* learnt parameters */
    int grad_last;             /* learnt parameters: the last step that adds to it; -1: none */
    bool joined;               /* learnt parameters: plan_is_joined */
};

static inline int native_slot(const struct value_state *state)
{
    return state->slot[state->native.layout][state->native.dtype];
}

/* What a node's forward pass leaves for its backward pass. */
struct node_state {
    int slot[4];
    void *hint; /* a primitive description of oneDNN, destroyed after planning */
    bool fused; /* relu, silu: done by the preceding norm, forward and backward; conv: done with
                 * another conv of the same input */
};

struct plan_random {
    uint64_t seed, first_sample;
};

/* One graph as steps. Invariants: steps of PHASE_FORWARD come before begin_backward, those of
 * PHASE_BACKWARD behind it, those of PHASE_JOIN behind them, those of PHASE_PREPARE anywhere before
 * who needs them; steps that ops add while node i is planned have node == i. Once it is finished
 * (tape_finish) nothing of it changes but the memory of its slots, times, `random`, `hold`, the
 * hooks, and addresses by tape_move. */
struct tape {
    const struct graph *graph;
    struct plan_options options;
    int64_t units; /* >= 1: see plan_options.units */
    int block;     /* channels of a block: 16 or 8 */
    void *dnnl;    /* engine and stream; see dnnl_step.h */
    struct slot *slots;
    int n_slots;
    struct step *steps;
    int n_steps;
    int64_t room_slots, room_steps;
    int begin_backward;         /* steps from here on are PHASE_BACKWARD or PHASE_JOIN */
    int begin_weights;          /* the second half of the backward pass, if split; else its end */
    enum step_phase phase;      /* while planning */
    int32_t planning;           /* the node that is being planned; -1: none */
    struct value_state *values; /* [graph->n_values] */
    struct node_state *nodes;   /* [graph->n_nodes] */
    int *outputs;               /* [graph->n_outputs]: slots of the gradients of the outputs */
    char *arena, *weights;
    bool arena_lent; /* by the caller */
    bool sketch;     /* only to find its size: copies of steps have no kernels */
    size_t arena_bytes, unshared_bytes, weights_bytes, shared_bytes;
    size_t winograd_bytes; /* of weights transformed for inference */
    float *gradients;      /* [units][n_gradients] */
    bool gradients_lent;   /* by the caller */
    int64_t n_gradients;
    double *squares, *factors; /* [units]: plan_unit_squares, plan_join_units */
    struct plan_random random;
    bool hold; /* running statistics */
    plan_gradient_hook hook;
    void *hook_arg;
    plan_step_hook step_hook;
    void *step_arg;
};

/* What an op receives to plan a node. */
struct plan_node {
    struct tape *tape;
    const struct node *node;
    struct node_state *state;
};

/* --- slots --- */

/* NO_SLOT if no memory; step_use then fails, so the result need not be checked before it. */
int slot_new(struct tape *tape, size_t bytes);
int slot_outside(struct tape *tape, void *at, size_t bytes);
/* A part of another slot's memory. */
int slot_view(struct tape *tape, int slot, size_t offset, size_t bytes);
/* The slot whose memory a slot is part of (itself if it has its own), and the offset in it. */
int slot_root(const struct tape *tape, int slot);
size_t slot_offset(const struct tape *tape, int slot);
/* Elements of a tensor of this shape in a layout, with the channels that were added. */
int64_t layout_count(const struct tape *tape, const struct shape *shape, enum layout layout);
/* Bytes of it, and of floats. */
size_t form_bytes(const struct tape *tape, const struct shape *shape, struct form form);
size_t layout_bytes(const struct tape *tape, const struct shape *shape, enum layout layout);
/* Whether the elements of this shape have the same order in all layouts. */
bool layout_is_same(const struct tape *tape, const struct shape *shape);
/* Whether an image of this shape has whole blocks only. */
bool layout_is_whole(const struct tape *tape, const struct shape *shape);
/* The physical extents, innermost last: [N, C, H, W, 1] or [N, C/b, H, W, b]; for PLAIN of another
 * rank leading 1s are added. */
void layout_extents(const struct tape *tape, const struct shape *shape, enum layout layout,
                    int64_t extents[5]);

/* The layout of what an op carry takes and gives: it follows from the channels alone, so that it is
 * the same in all tiles of an image. */
enum layout carry_layout(const struct tape *tape, const struct shape *shape);

/* --- values --- */

const struct shape *in_shape(const struct plan_node *pn, int i);
const struct shape *out_shape(const struct plan_node *pn);
bool has_input(const struct plan_node *pn, int i);
/* The layout in which input i, and (backward) the output, were computed. */
enum layout in_layout(const struct plan_node *pn, int i);
enum layout out_layout(const struct plan_node *pn);
/* How the graph has input i stored. */
const struct storage *in_storage(const struct plan_node *pn, int i);
/* The layout that input i already has, if blocked is acceptable; else PLAIN. */
enum layout in_layout_whole(const struct plan_node *pn, int i);

/* The slot of a value in this form; converted if necessary. Stored forms are those of the graph. */
int value_slot(struct tape *tape, value_id value, struct form form, struct err *err);
/* The floats of input i in this layout: all that an op needs which knows floats only. */
int in_slot(struct plan_node *pn, int i, enum layout layout, struct err *err);
/* Input i as the graph has it stored. */
int in_stored(struct plan_node *pn, int i, enum layout layout, struct err *err);
/* A slot for the output in this form, which becomes its native one. */
int out_stored(struct plan_node *pn, struct form form);
int out_slot(struct plan_node *pn, enum layout layout); /* floats */
/* The output uses the memory of an existing slot (a view). */
void out_is(struct plan_node *pn, int slot, struct form form);
/* The floats of the output, after forward. */
int out_value(struct plan_node *pn, enum layout layout, struct err *err);

bool wants_gradient(const struct plan_node *pn, int i);
/* The gradient of the output in this layout. */
int out_gradient(struct plan_node *pn, enum layout layout, struct err *err);
/* A fresh slot for a contribution to the gradient of input i. */
int gradient_slot(struct plan_node *pn, int i, enum layout layout);
/* The contribution is complete; `slot` may be shared with others. */
bool gradient_add(struct plan_node *pn, int i, int slot, enum layout layout, struct err *err);
/* Where a kernel may add directly to the gradient of a learnt parameter, plain. */
int parameter_gradient_slot(const struct plan_node *pn, int i);

/* --- steps --- */

struct step_spec {
    const char *kernel;
    bool (*run)(const struct step *step, struct err *err); /* as in struct step */
    const void *state;                                     /* copied */
    size_t state_size;
    double flops;
};

/* Appends a step; call step_use for its slots right after. NULL if no memory (err is set). */
struct step *step_add(struct tape *tape, const struct step_spec *spec, struct err *err);
/* Adds a slot to the step last added; its index in at[] counts up. False if NO_SLOT is given; use
 * step_use_optional for slots that may be absent. */
bool step_use(struct step *step, int slot, enum access access, struct err *err);
void step_use_optional(struct step *step, int slot, enum access access);
void step_in_place(struct step *step, int from, int from_too, int to);

/* --- units of a batch whose gradients stay apart (plan_options.units) --- */

/* Samples, or rows, of one unit where all have so many. */
int64_t unit_rows(const struct plan_node *pn, int64_t rows);
/* The step adds to gradients of parameters, and its kernel was made for the rows of one unit: it
 * runs for each of them. apart: bit k is set if slot k has the parts of one unit after another;
 * gradients of parameters are found, all others are the same for all units. Call it after the
 * step's slots. It must not have `bind`. */
void step_each_unit(struct tape *tape, struct step *step, uint32_t apart);
/* Whether a layer whose kernels join units may add to the gradients of its parameters: an error, if
 * there are several. */
bool plan_units_joined(const struct plan_node *pn, struct err *err);

/* Whether a weight is brought into a kernel's layout when the plan is made, not in every run. */
bool prepares_once(const struct tape *tape, value_id weight);

/* A backward step of a node with two inputs: it reads both, plain, and the gradient of the output,
 * and writes the gradients of those that want one (else at[] is NULL) and a slot for scratch
 * (NO_SLOT: none): at[0..2], at[3..4], at[5]. No step where none is wanted. */
bool step_pair_back(struct plan_node *pn, const struct step_spec *spec, int scratch,
                    struct err *err);

/* How a kernel keeps its weights. */
struct step_layout {
    size_t bytes;
    uint64_t key;   /* distinguishes it from other layouts of the same weight */
    bool with_bias; /* includes the bias */
};

/* A slot with the weight (input 1), and the bias (input 2) if present and requested, in a kernel's
 * own layout: the step `spec` makes it from at[0], at[1] (NULL: no bias) into at[2]; for inference
 * once, unless another plan has already made it, else in every run. */
int step_prepare(struct plan_node *pn, const struct step_spec *spec,
                 const struct step_layout *layout, struct err *err);

/* dst = src, or a part of dst at copy_offset; omitted if the memory can be shared. */
bool step_copy(struct tape *tape, int src, int dst, size_t copy_offset, size_t bytes,
               struct err *err);
/* form.c: a kernel of stored numbers over whole slots; NULL with an error. */
struct step *step_stored(struct tape *tape, enum stored kind, const struct storage *storage,
                         int from, int to, struct err *err);
/* The same: floats become stored numbers (not float32) or, with `back`, floats again. */
struct step *step_convert(struct tape *tape, const struct storage *storage, bool back, int from,
                          int to, struct err *err);
struct stored_scale stored_scale_of(const struct storage *storage);
/* A slot with the floats of a tensor in another layout. */
int step_reorder(struct tape *tape, const struct shape *shape, int slot, enum layout from,
                 enum layout to, struct err *err);
/* dst = a + b, elementwise over whole slots. */
bool step_sum(struct tape *tape, int a, int b, int dst, struct err *err);
#endif
