// Writes a jump over the first bytes of a function of a library.
#pragma once
#include <stddef.h>

// Some of the functions are no longer than these bytes.
#if defined(__x86_64__)
enum { JUMP_BYTES = 12 };
#elif defined(__aarch64__)
enum { JUMP_BYTES = 4 };
#else
#error "no jump is known for this processor"
#endif

// Has every call of `function` go to `target`; what stood there goes to `saved`, unless that is NULL.
void write_jump(void *function, void *target, unsigned char saved[JUMP_BYTES]);
// Puts back what write_jump has saved.
void remove_jump(void *function, const unsigned char saved[JUMP_BYTES]);
