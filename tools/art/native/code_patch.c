#include "code_patch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void overwrite(void *function, const unsigned char bytes[JUMP_BYTES]) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)function & ~(page - 1);
    size_t length = (uintptr_t)function + JUMP_BYTES - start;
    if (mprotect((void *)start, length, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        perror("art: the runtime's code cannot be changed");
        exit(1);
    }
    memcpy(function, bytes, JUMP_BYTES);
    __builtin___clear_cache((char *)function, (char *)function + JUMP_BYTES);
    mprotect((void *)start, length, PROT_READ | PROT_EXEC);
}

void write_jump(void *function, void *target, unsigned char saved[JUMP_BYTES]) {
#if defined(__x86_64__)
    // movabs $target, %rax; jmp *%rax
    unsigned char jump[JUMP_BYTES] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0, 0x90, 0x90, 0x90, 0x90};
    memcpy(jump + 2, &target, sizeof target);
#elif defined(__aarch64__)
    // ldr x16, #8; br x16; the address
    unsigned char jump[JUMP_BYTES] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
    memcpy(jump + 8, &target, sizeof target);
#else
#error "no jump is known for this processor"
#endif
    if (saved) memcpy(saved, function, JUMP_BYTES);
    overwrite(function, jump);
}

void remove_jump(void *function, const unsigned char saved[JUMP_BYTES]) { overwrite(function, saved); }
