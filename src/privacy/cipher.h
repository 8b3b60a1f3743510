/* cipher.h: random bits for what must stay secret: ChaCha20 (RFC 8439, libsodium), keyed by a
 * secret. The rest of the program draws from Philox by the seed of the config, which is written
 * into the results: noise from there could be subtracted. Bits are addressed by (domain, step,
 * index), so that any part can be made alone and threads never change a byte. */
#ifndef PRIVACY_CIPHER_H
#define PRIVACY_CIPHER_H
#include <stddef.h>
#include "privacy/secret.h"

/* What bits are for; each has its own nonces. */
enum cipher_domain { CIPHER_NOISE = 1, CIPHER_SAMPLE = 2, CIPHER_HOLD_OUT = 3 };

#define CIPHER_WORDS 8                       /* of 64 bits in a block */
#define CIPHER_MOST_WORDS (INT64_C(1) << 35) /* of a (domain, step) */

/* Blocks [block, block + n) of the stream of (domain, step) -> out [n * CIPHER_WORDS]. The nonce
 * is the domain and the step, little-endian: 4 and 8 bytes. Thread-safe. */
void cipher_words(const struct secret *secret, uint32_t domain, uint64_t step, uint32_t block,
                  size_t n, uint64_t *out);
#endif
