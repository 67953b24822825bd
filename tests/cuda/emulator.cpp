// The threads of a block as fibers: each goes on until it waits for the others.
#include "emulator.h"
#include <memory>
#include <vector>

// Puts this fiber's stack pointer at *from and goes on where `to` was left.
extern "C" void adead_switch_fiber(void **from, void *to);
asm(R"(
.text
.hidden adead_switch_fiber
.globl adead_switch_fiber
.type adead_switch_fiber, @function
adead_switch_fiber:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

__thread Block *running;

std::map<std::string, Kernel> &kernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

namespace {
const size_t STACK = 1 << 16, LEAST_SHARED = 48 << 10, MOST_SHARED = 232448, THREADS = 1024;

struct Host {
    Block block;
    void *scheduler, *fibers[THREADS];
    bool done[THREADS];
    std::unique_ptr<char[]> stacks{new char[THREADS * STACK]};
    std::unique_ptr<float4[]> shared{new float4[MOST_SHARED / sizeof(float4)]};
    const std::function<void()> *kernel;
};
thread_local std::unique_ptr<Host> host;

void to_scheduler(Host &h) { adead_switch_fiber(&h.fibers[h.block.current], h.scheduler); }

void entry() {
    Host &h = *host;
    (*h.kernel)();
    h.done[h.block.current] = true;
    h.block.live--;
    h.block.live_of_warp[h.block.current / 32]--;
    to_scheduler(h);
    abort(); // a fiber that is done is not resumed
}

void run_block(Host &h, unsigned threads, size_t shared) {
    Block &b = h.block;
    // What a kernel has not written is a NaN.
    memset(static_cast<void *>(b.shared), 0xff, shared);
    b.live = threads;
    b.whole = {};
    for (unsigned warp = 0; warp < 32; warp++) {
        b.of_warp[warp] = {};
        unsigned first = warp * 32;
        b.live_of_warp[warp] = threads > first ? (threads - first < 32 ? threads - first : 32) : 0;
    }
    for (unsigned t = 0; t < threads; t++) {
        // As a call leaves it: registers, the address to return to, and behind it a multiple of 16 and 8.
        auto top = reinterpret_cast<uintptr_t>(h.stacks.get() + (t + 1) * STACK) / 16 * 16;
        void **stack = reinterpret_cast<void **>(top) - 8;
        memset(stack, 0, 8 * sizeof *stack);
        stack[6] = reinterpret_cast<void *>(entry);
        h.fibers[t] = stack;
        h.done[t] = false;
    }
    while (b.live) {
        for (unsigned t = 0; t < threads; t++) {
            if (h.done[t]) continue;
            b.current = t;
            b.thread = {t % b.size.x, t / b.size.x % b.size.y, t / b.size.x / b.size.y};
            adead_switch_fiber(&h.scheduler, h.fibers[t]);
        }
    }
}
}

void meet(Barrier &barrier, const unsigned &members) {
    unsigned generation = barrier.generation;
    barrier.arrived++;
    while (barrier.generation == generation) {
        if (barrier.arrived >= members) {
            barrier.arrived = 0;
            barrier.generation++;
            break;
        }
        to_scheduler(*host);
    }
}

void launch(dim3u grid, dim3u block, size_t shared, const std::function<void()> &kernel) {
    if (!host) host.reset(new Host);
    Host &h = *host;
    running = &h.block;
    h.kernel = &kernel;
    h.block.grid = grid;
    h.block.size = block;
    h.block.shared = h.shared.get();
    shared = shared < LEAST_SHARED ? LEAST_SHARED : shared;
    dim3u &i = h.block.index;
    for (i.z = 0; i.z < grid.z; i.z++)
        for (i.y = 0; i.y < grid.y; i.y++)
            for (i.x = 0; i.x < grid.x; i.x++) run_block(h, block.x * block.y * block.z, shared);
}
