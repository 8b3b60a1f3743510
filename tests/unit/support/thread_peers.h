/* thread_peers.h: the peers of a plan (net/plan/peers.h) as threads of one process, which wait for
 * each other as processes do: a send ends when it was received. Sums are added in the order of the
 * ranks. When one abandons the others, messages fail for all. */
#ifndef SUPPORT_THREAD_PEERS_H
#define SUPPORT_THREAD_PEERS_H
#include "net/plan/peers.h"

struct thread_peers;

/* *out is the caller's; free with thread_peers_free when no thread uses it. NULL if no memory. */
struct thread_peers *thread_peers_new(int size);
void thread_peers_free(struct thread_peers *peers);
/* What the thread of this rank gives to its plan; valid as long as `peers`. */
const struct plan_peers *thread_peers_of(struct thread_peers *peers, int rank);
/* How often any function was called by this rank. */
int64_t thread_peers_calls(const struct thread_peers *peers, int rank);

/* Runs work(arg, rank) in a thread for every rank and waits for all. */
void thread_peers_run(struct thread_peers *peers, void (*work)(void *arg, int rank), void *arg);
#endif
