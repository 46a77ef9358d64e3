/* A program for a sampling profiler: two threads that compute in nested functions, touch new memory and sleep.
 * usage: sampled_program SECONDS */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile double sink;
static double end_time;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) void inner_sum(int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += i * 0.5;
    sink = sum;
}

__attribute__((noinline)) void outer_loop(int count) {
    inner_sum(count);
    char *memory = malloc(1 << 20);
    memset(memory, 1, 1 << 20);
    sink = memory[count % 4096];
    free(memory);
}

static void *work(void *unused) {
    while (now() < end_time) {
        outer_loop(100000);
        usleep(500);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    end_time = now() + (argc > 1 ? atof(argv[1]) : 1);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
