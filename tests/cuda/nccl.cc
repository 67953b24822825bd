// NCCL between threads of one process, whose memory is the host's: for testing adead's ranks where there is no GPU. It becomes
// libnccl.so.2. As the real one with blocking = 0, calls return at once, and ncclCommGetAsyncError says when the work is done.
// ADEAD_TEST_SLOW_NCCL is the number of milliseconds that rank 0 receives late.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

typedef int Result;
const Result OK = 0, INTERNAL = 3, IN_PROGRESS = 7;
struct Id { char bytes[128]; };

// What is on its way, by the id, the sender and the receiver.
static std::mutex lock;
static std::condition_variable changed;
static std::map<std::pair<std::string, std::pair<int, int>>, std::deque<std::vector<char>>> mail;
static std::map<std::string, int> present;

struct Communicator {
    std::string id;
    int rank, size;
    Result state = OK;
    bool given_up = false;
    std::thread work;
};
struct Work { bool sends; char *at; size_t bytes; int rank; Communicator *of; };
static thread_local std::vector<Work> group;

static void begin(Communicator *c, std::vector<Work> all, bool joins) {
    if (c->work.joinable()) c->work.join();
    c->state = IN_PROGRESS;
    c->work = std::thread([=] {
        std::unique_lock<std::mutex> held(lock);
        auto until = [&](auto done) {
            changed.wait(held, [&] { return c->given_up || done(); });
            return !c->given_up;
        };
        bool good = true;
        if (joins) {
            present[c->id]++;
            changed.notify_all();
            good = until([&] { return present[c->id] >= c->size; });
        }
        for (auto &one : all) {
            if (!one.sends) continue;
            mail[{c->id, {c->rank, one.rank}}].emplace_back(one.at, one.at + one.bytes);
            changed.notify_all();
        }
        const char *slow = getenv("ADEAD_TEST_SLOW_NCCL");
        if (slow && c->rank == 0) {
            held.unlock();
            std::this_thread::sleep_for(std::chrono::milliseconds(atoi(slow)));
            held.lock();
        }
        for (auto &one : all) {
            if (one.sends || !good) continue;
            auto &from = mail[{c->id, {one.rank, c->rank}}];
            good = until([&] { return !from.empty(); });
            if (!good) break;
            good = from.front().size() == one.bytes;
            if (good) memcpy(one.at, from.front().data(), one.bytes);
            from.pop_front();
        }
        c->state = good ? OK : INTERNAL;
    });
}

extern "C" {
Result ncclGetVersion(int *to) { return *to = 21805, OK; }
const char *ncclGetErrorString(Result code) { return code == INTERNAL ? "internal error" : "unhandled error"; }

Result ncclGetUniqueId(Id *to) {
    static int number;
    std::lock_guard<std::mutex> held(lock);
    memset(to, 0, sizeof *to);
    return snprintf(to->bytes, sizeof to->bytes, "stand-in %d", number++), OK;
}

Result ncclCommInitRankConfig(Communicator **to, int size, Id id, int rank, void *) {
    *to = new Communicator{id.bytes, rank, size};
    begin(*to, {}, true);
    return IN_PROGRESS;
}

Result ncclCommGetAsyncError(Communicator *c, Result *to) {
    std::lock_guard<std::mutex> held(lock);
    return *to = c->state, OK;
}

Result ncclGroupStart() { return group.clear(), OK; }
Result ncclSend(const void *at, size_t bytes, int, int rank, Communicator *c, void *) {
    return group.push_back({true, (char *)at, bytes, rank, c}), OK;
}
Result ncclRecv(void *at, size_t bytes, int, int rank, Communicator *c, void *) {
    return group.push_back({false, (char *)at, bytes, rank, c}), OK;
}
Result ncclGroupEnd() {
    if (group.empty()) return OK;
    begin(group[0].of, group, false);
    return IN_PROGRESS;
}

Result ncclCommAbort(Communicator *c) {
    {
        std::lock_guard<std::mutex> held(lock);
        c->given_up = true;
        changed.notify_all();
    }
    if (c->work.joinable()) c->work.join();
    delete c;
    return OK;
}
}
