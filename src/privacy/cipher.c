/* cipher.c: see cipher.h. */
#include "privacy/cipher.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>

void cipher_words(const struct secret *secret, uint32_t domain, uint64_t step, uint32_t block,
                  size_t n, uint64_t *out)
{
    unsigned char nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
    uint32_t first = htole32(domain);
    uint64_t second = htole64(step);
    memcpy(nonce, &first, sizeof first);
    memcpy(nonce + sizeof first, &second, sizeof second);
    size_t bytes = n * CIPHER_WORDS * sizeof *out;
    memset(out, 0, bytes); /* zeros xor the stream */
    crypto_stream_chacha20_ietf_xor_ic((unsigned char *)out, (const unsigned char *)out, bytes,
                                       nonce, block, secret->key);
    for (size_t i = 0; i < n * CIPHER_WORDS; i++)
        out[i] = le64toh(out[i]);
}
