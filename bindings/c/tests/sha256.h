/* SHA-256, for the conformance runner. */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>

/* Writes 64 lower-case hex digits and a NUL. */
void sha256_hex(const void *data, size_t bytes, char hex[65]);

#endif
