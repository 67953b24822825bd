// A driver of CUDA on the host: memory is the host's, streams do at once what they are given, and kernels run as emulator.h has
// it. For testing adead's CUDA backend where there is no GPU; libcuda.so.1 to whoever loads it. What a module is made of does not
// matter: a kernel is the one of that name here. Kernels that ran are added to the file that ADEAD_TEST_LAUNCHED names, one a line.
#include "emulator.h"
#include <cstdio>
#include <ctime>
#include <mutex>
#include <set>
#include <vector>

typedef int Result;
typedef void *Handle;
const Result OK = 0, INVALID = 1, MEMORY = 2, NOT_FOUND = 500;
const size_t TOTAL = size_t(8) << 30;

static std::mutex lock;
#define LOCKED std::lock_guard<std::mutex> held(lock)
static size_t used;
static int context;
static thread_local std::vector<Handle> current;

// What ran, and what it is told at the end.
struct Launched {
    std::set<Kernel> all;
    ~Launched() {
        const char *path = getenv("ADEAD_TEST_LAUNCHED");
        FILE *file = path ? fopen(path, "a") : nullptr;
        for (auto &kernel : kernels())
            if (file && all.count(kernel.second)) fprintf(file, "%s\n", kernel.first.c_str());
        if (file) fclose(file);
    }
};
static Launched launched;

struct Stream { std::vector<std::function<Result()>> *captured = nullptr; };
struct Event { double time = -1; };
struct Graph { std::vector<std::function<Result()>> work; };

// Streams of several threads run beside each other.
static Result enqueue(Handle stream, std::function<Result()> work) {
    // 1 is the default stream, whose work runs at once too.
    auto *s = stream == Handle(1) ? nullptr : static_cast<Stream *>(stream);
    if (s && s->captured) {
        s->captured->push_back(work);
        return OK;
    }
    return work();
}

// How many GPUs there are: 1, or what ADEAD_TEST_GPUS says.
static int count() {
    const char *given = getenv("ADEAD_TEST_GPUS");
    return given ? atoi(given) : 1;
}

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

extern "C" {
Result cuInit(unsigned) { return OK; }
Result cuDriverGetVersion(int *v) { return *v = 12080, OK; }
Result cuGetErrorName(int code, const char **name) { return *name = code == MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN", OK; }
Result cuDeviceGetCount(int *n) { return *n = count(), OK; }
Result cuDeviceGet(int *d, int i) { return *d = i, i >= 0 && i < count() ? OK : 101; }
Result cuDeviceGetName(char *to, int n, int) { return strncpy(to, "GPU on the host", n), OK; }
// ADEAD_TEST_UUID, of 32 digits, makes it the same GPU as another driver's.
Result cuDeviceGetUuid_v2(unsigned char *to, int device) {
    memcpy(to, "adead-emulation!", 16);
    const char *wanted = getenv("ADEAD_TEST_UUID");
    for (int i = 0; wanted && strlen(wanted) == 32 && i < 16; i++)
        to[i] = static_cast<unsigned char>(strtoul(std::string(wanted + 2 * i, 2).c_str(), nullptr, 16));
    to[15] ^= device;
    return OK;
}
Result cuDeviceTotalMem_v2(size_t *n, int) { return *n = TOTAL, OK; }
// ADEAD_TEST_CAPABILITY, 80 for 8.0, makes it another GPU than a 9.0.
Result cuDeviceGetAttribute(int *v, int what, int) {
    const char *wanted = getenv("ADEAD_TEST_CAPABILITY");
    int capability = wanted ? atoi(wanted) : 90;
    switch (what) {
    case 1: *v = 1024; break;
    case 2: case 3: *v = 1024; break;
    case 4: *v = 64; break;
    case 5: *v = 0x7fffffff; break;
    case 6: case 7: *v = 65535; break;
    case 8: *v = 49152; break;
    case 16: *v = 4; break;
    case 75: *v = capability / 10; break;
    case 76: *v = capability % 10; break;
    case 81: *v = 233472; break;
    case 97: *v = 232448; break;
    default: *v = 0;
    }
    return OK;
}
Result cuDeviceGetPCIBusId(char *to, int n, int device) { return snprintf(to, n, "0000:00:0%d.0", device), OK; }
Result cuDevicePrimaryCtxRetain(Handle *c, int) { return *c = &context, OK; }
Result cuDevicePrimaryCtxRelease_v2(int) { return OK; }
Result cuCtxGetCurrent(Handle *c) { return *c = current.empty() ? nullptr : current.back(), OK; }
Result cuCtxPushCurrent_v2(Handle c) { return current.push_back(c), OK; }
Result cuCtxPopCurrent_v2(Handle *c) {
    if (current.empty()) return INVALID;
    *c = current.back();
    current.pop_back();
    return OK;
}
Result cuCtxEnablePeerAccess(Handle, unsigned) { return OK; }
Result cuMemGetInfo_v2(size_t *f, size_t *t) { LOCKED; return *f = TOTAL - used, *t = TOTAL, OK; }
// With its size in front.
static void *take(size_t n) {
    auto *at = static_cast<char *>(aligned_alloc(256, (n + 511) / 256 * 256));
    if (!at) return nullptr;
    memset(at, 0xcd, n + 256);
    memcpy(at, &n, sizeof n);
    return at + 256;
}
Result cuMemAlloc_v2(uint64_t *p, size_t n) {
    LOCKED;
    if (n > TOTAL - used) return MEMORY;
    void *at = take(n);
    if (!at) return MEMORY;
    used += n;
    *p = reinterpret_cast<uint64_t>(at);
    return OK;
}
Result cuMemFree_v2(uint64_t p) {
    LOCKED;
    char *at = reinterpret_cast<char *>(p) - 256;
    size_t n;
    memcpy(&n, at, sizeof n);
    used -= n;
    free(at);
    return OK;
}
Result cuMemHostAlloc(void **p, size_t n, unsigned) { return (*p = take(n)) ? OK : MEMORY; }
Result cuMemFreeHost(void *p) { return free(static_cast<char *>(p) - 256), OK; }
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, Handle s) {
    return enqueue(s, [=] { return memcpy(reinterpret_cast<void *>(to), from, n), OK; });
}
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, Handle s) {
    return enqueue(s, [=] { return memcpy(to, reinterpret_cast<void *>(from), n), OK; });
}
Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, Handle s) {
    return enqueue(s, [=] { return memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), n), OK; });
}
Result cuMemcpyPeerAsync(uint64_t to, Handle, uint64_t from, Handle, size_t n, Handle s) { return cuMemcpyDtoDAsync_v2(to, from, n, s); }
Result cuMemsetD32Async(uint64_t to, unsigned v, size_t n, Handle s) {
    return enqueue(s, [=] {
        for (size_t i = 0; i < n; i++) reinterpret_cast<unsigned *>(to)[i] = v;
        return OK;
    });
}
Result cuStreamCreateWithPriority(Handle *s, unsigned, int) { return *s = new Stream, OK; }
Result cuStreamDestroy_v2(Handle s) { return delete static_cast<Stream *>(s), OK; }
Result cuStreamQuery(Handle) { return OK; }
Result cuStreamSynchronize(Handle) { return OK; }
Result cuStreamWaitEvent(Handle, Handle, unsigned) { return OK; }
Result cuStreamBeginCapture_v2(Handle s, int) {
    auto *stream = static_cast<Stream *>(s);
    if (stream->captured) return INVALID;
    stream->captured = new std::vector<std::function<Result()>>;
    return OK;
}
Result cuStreamEndCapture(Handle s, Handle *g) {
    auto *stream = static_cast<Stream *>(s);
    if (!stream->captured) return INVALID;
    *g = new Graph{std::move(*stream->captured)};
    delete stream->captured;
    stream->captured = nullptr;
    return OK;
}
Result cuGraphInstantiateWithFlags(Handle *exec, Handle g, unsigned long long) { return *exec = new Graph(*static_cast<Graph *>(g)), OK; }
Result cuGraphLaunch(Handle exec, Handle s) {
    for (auto &work : static_cast<Graph *>(exec)->work)
        if (Result r = enqueue(s, work)) return r;
    return OK;
}
Result cuGraphDestroy(Handle g) { return delete static_cast<Graph *>(g), OK; }
Result cuGraphExecDestroy(Handle g) { return delete static_cast<Graph *>(g), OK; }
Result cuEventCreate(Handle *e, unsigned) { return *e = new Event, OK; }
Result cuEventDestroy_v2(Handle e) { return delete static_cast<Event *>(e), OK; }
Result cuEventRecord(Handle e, Handle s) {
    return enqueue(s, [=] { return static_cast<Event *>(e)->time = now(), OK; });
}
Result cuEventQuery(Handle) { return OK; }
Result cuEventSynchronize(Handle) { return OK; }
Result cuEventElapsedTime(float *ms, Handle a, Handle b) {
    return *ms = static_cast<Event *>(b)->time - static_cast<Event *>(a)->time, OK;
}
Result cuModuleLoadDataEx(Handle *m, const void *, unsigned, int *, void **) { return *m = new int, OK; }
Result cuModuleUnload(Handle m) { return delete static_cast<int *>(m), OK; }
Result cuModuleGetFunction(Handle *f, Handle, const char *name) {
    auto found = kernels().find(name);
    if (found == kernels().end()) return NOT_FOUND;
    return *f = reinterpret_cast<Handle>(found->second), OK;
}
Result cuFuncGetAttribute(int *v, int what, Handle) { return *v = what == 0 ? 1024 : 0, OK; }
Result cuFuncSetAttribute(Handle, int, int) { return OK; }
Result cuLaunchKernel(Handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                      Handle s, void **, void **extra) {
    // The parameters are the caller's again when this returns. Constants that a kernel does not get are zeros.
    size_t bytes = *static_cast<size_t *>(extra[3]);
    std::vector<uint64_t> parameters(bytes / 8 + 32);
    memcpy(parameters.data(), extra[1], bytes);
    {
        LOCKED;
        launched.all.insert(reinterpret_cast<Kernel>(f));
    }
    return enqueue(s, [=] {
        reinterpret_cast<Kernel>(f)(reinterpret_cast<const char *>(parameters.data()), {gx, gy, gz}, {bx, by, bz}, shared);
        return OK;
    });
}
struct LaunchConfig { unsigned grid[3], block[3], shared; Handle stream; const void *attributes; unsigned count; };
// Kernels run one after the other here, so none starts early.
Result cuLaunchKernelEx(const LaunchConfig *c, Handle f, void **given, void **extra) {
    auto [g, b] = std::make_pair(c->grid, c->block);
    return cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], c->shared, c->stream, given, extra);
}
}
