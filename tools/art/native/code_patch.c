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

#if defined(__aarch64__)
// One instruction jumps 128 MB at most: it leads to this memory, which holds the whole jump and lies near the function.
static uint32_t *near(void *function) {
    enum { FAR_BYTES = 120 << 20, STEP_BYTES = 1 << 20 };
    static uint32_t *free_memory;
    static size_t left;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)function & ~(page - 1);
    for (uintptr_t away = STEP_BYTES; left < 4 && away < FAR_BYTES; away += STEP_BYTES) {
        for (int side = 0; side < 2 && left < 4; side++) {
            void *wanted = (void *)(side ? at - away : at + away);
            void *memory = mmap(wanted, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == wanted) {
                free_memory = memory;
                left = page / sizeof *free_memory;
            } else if (memory != MAP_FAILED) {
                munmap(memory, page);
            }
        }
    }
    if (left < 4) {
        fprintf(stderr, "art: there is no free memory near the runtime's code\n");
        exit(1);
    }
    left -= 4;
    return (free_memory += 4) - 4;
}
#endif

void write_jump(void *function, void *target, unsigned char saved[JUMP_BYTES]) {
    unsigned char jump[JUMP_BYTES];
#if defined(__x86_64__)
    // movabs $target, %rax; jmp *%rax
    const unsigned char code[JUMP_BYTES] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    memcpy(jump, code, sizeof code);
    memcpy(jump + 2, &target, sizeof target);
#elif defined(__aarch64__)
    // ldr x16, #8; br x16; the address
    uint32_t *whole = near(function);
    whole[0] = 0x58000050;
    whole[1] = 0xd61f0200;
    memcpy(whole + 2, &target, sizeof target);
    __builtin___clear_cache((char *)whole, (char *)(whole + 4));
    // b whole
    uint32_t branch = 0x14000000 | (uint32_t)(((intptr_t)whole - (intptr_t)function) / 4 & 0x3ffffff);
    memcpy(jump, &branch, sizeof branch);
#endif
    if (saved) memcpy(saved, function, JUMP_BYTES);
    overwrite(function, jump);
}

void remove_jump(void *function, const unsigned char saved[JUMP_BYTES]) { overwrite(function, saved); }
