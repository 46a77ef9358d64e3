// Writes a jump over the first bytes of a function of a library.
#pragma once
#include <stddef.h>

enum { JUMP_BYTES = 16 };

// Has every call of `function` go to `target`; what stood there goes to `saved`, unless that is NULL.
void write_jump(void *function, void *target, unsigned char saved[JUMP_BYTES]);
// Puts back what write_jump has saved.
void remove_jump(void *function, const unsigned char saved[JUMP_BYTES]);
