// Memory: of the device, at addresses that mean nothing to the host, and of the host, which the host may not touch while work that it
// has not waited for uses it.
#pragma once

#include <algorithm>
#include <csignal>
#include <map>
#include <vector>

#include <sys/mman.h>

#include "state.h"

namespace stand_in {

/// For each queue, how many pieces of its work are known to be done.
using Clock = std::vector<u64>;

inline bool knows(const Clock& clock, size_t queue, u64 piece) { return queue < clock.size() && clock[queue] >= piece; }

inline void join(Clock& clock, const Clock& other) {
    if (clock.size() < other.size()) clock.resize(other.size());
    for (size_t i = 0; i < other.size(); i++) clock[i] = std::max(clock[i], other[i]);
}

/// What the host has waited for.
inline Clock host;

/// A stretch that a piece of work has used.
struct Access {
    size_t queue;
    u64 piece;
    size_t from, to;
    bool writes;
};

/// Who uses memory that the host has not waited for.
struct Use {
    size_t queue;
    u64 piece;
    bool writes;
};

constexpr size_t PAGE = 4096;

inline size_t round(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

inline u8* map_pages(size_t len, int protection, int file = -1) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* at = mmap(nullptr, len, protection, flags, file, 0);
    if (at == MAP_FAILED) wrong("the machine has no memory left");
    return static_cast<u8*>(at);
}

/// What memory holds before anything is written to it, again and again.
constexpr size_t PATTERN = 1 << 16;

inline const u8* pattern() {
    static const std::vector<u8> bytes = [] {
        std::vector<u8> made(PATTERN);
        for (size_t i = 0; i < PATTERN; i++) made[i] = static_cast<u8>(0xa5 + i * 0x3d + (i >> 8) * 0x6b);
        return made;
    }();
    return bytes.data();
}

struct Block {
    u64 context = 0;
    /// Its address, for the caller.
    u64 at = 0;
    size_t len = 0;
    /// Its bytes.
    u8* bytes = nullptr;
    std::vector<Access> accesses;
    std::vector<Use> uses;

    void fill() {
        for (size_t i = 0; i < len; i += PATTERN) std::memcpy(bytes + i, pattern(), std::min(PATTERN, len - i));
    }

    /// Neither what nobody has written nor zeros.
    size_t not_wiped() const {
        if (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, len - 1) == 0) return 0;
        const u8* unwritten = pattern();
        size_t count = 0;
        for (size_t i = 0; i < len; i++) count += bytes[i] != 0 && bytes[i] != unwritten[i % PATTERN];
        return count;
    }

    void use(size_t queue, u64 piece, bool writes) { uses.push_back({queue, piece, writes}); }

    /// Forgets those that the host has waited for.
    void forget_known() {
        auto known = [](const Use& use) { return knows(host, use.queue, use.piece); };
        uses.erase(std::remove_if(uses.begin(), uses.end(), known), uses.end());
    }

    /// A piece of work touches a stretch: whatever else did and is not known to be done before it, is a race.
    void touch(const char* doing, const Clock& clock, const Access& access) {
        for (const Access& other : accesses) {
            const bool overlaps = access.from < other.to && other.from < access.to;
            if (overlaps && (access.writes || other.writes) && !knows(clock, other.queue, other.piece)) {
                wrong("%s: bytes %zu to %zu of memory %#llx are used by two queues, and neither waits for the other", doing,
                      std::max(access.from, other.from), std::min(access.to, other.to), static_cast<unsigned long long>(at));
            }
        }
        if (accesses.size() >= 1024) {
            auto known = [](const Access& other) { return knows(host, other.queue, other.piece); };
            accesses.erase(std::remove_if(accesses.begin(), accesses.end(), known), accesses.end());
        }
        accesses.push_back(access);
    }

    /// Complains if it cannot be given back.
    void check_free(const char* doing) {
        forget_known();
        if (!uses.empty() && lost == SUCCESS) wrong("%s: memory that work under way uses", doing);
        const size_t left = not_wiped();
        if (control.now.wiped && left > 0) wrong("%s: %zu of %zu bytes are not wiped", doing, left, len);
    }
};

/// Memory of the device lies before a page that nobody may touch, so that a kernel that goes too far is seen.
struct DeviceBlock : Block {
    u8* pages = nullptr;
    size_t mapped = 0;

    void open(size_t bytes) {
        len = bytes;
        const size_t inner = round(bytes, PAGE);
        mapped = inner + 2 * PAGE;
        pages = map_pages(mapped, PROT_NONE);
        if (mprotect(pages + PAGE, inner, PROT_READ | PROT_WRITE) != 0) wrong("the machine has no memory left");
        bytes_at_end(inner);
        fill();
    }

    void close() { munmap(pages, mapped); }

  private:
    void bytes_at_end(size_t inner) { bytes = pages + PAGE + inner - round(len, 16); }
};

/// Memory of the host is mapped twice: for the caller, who may be kept from it, and for here.
struct HostBlock : Block {
    size_t mapped = 0;
    int protection = PROT_READ | PROT_WRITE;

    void open(size_t wanted) {
        len = wanted;
        mapped = round(wanted, PAGE);
        const int file = memfd_create("pinned", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, static_cast<off_t>(mapped)) != 0) wrong("the machine has no memory left");
        bytes = map_pages(mapped, protection, file);
        at = reinterpret_cast<u64>(map_pages(mapped, protection, file));
        ::close(file);
        fill();
    }

    /// Lets the caller to it as far as what is under way allows.
    void protect() {
        int wanted = PROT_READ | PROT_WRITE;
        if (lost == SUCCESS) {
            for (const Use& use : uses) wanted &= use.writes ? PROT_NONE : PROT_READ;
        }
        if (wanted == protection) return;
        protection = wanted;
        if (mprotect(reinterpret_cast<void*>(at), mapped, protection) != 0) wrong("memory cannot be protected");
    }

    void close() {
        munmap(bytes, mapped);
        munmap(reinterpret_cast<void*>(at), mapped);
    }
};

template <class T>
using Blocks = std::map<u64, T>;

inline Blocks<DeviceBlock> device_blocks;
inline Blocks<HostBlock> host_blocks;

/// Addresses that no process on x86-64 or aarch64 has, each aligned to 256 bytes and no more, far from the next. None comes twice.
inline u64 next_address = 0x00ab'0000'0000'0100;

inline u64 take_address(size_t len) {
    const u64 at = next_address;
    next_address += round(len, 512) + (u64{1} << 20);
    return at;
}

/// A stretch within one block; `len` may be 0, and then it may start at the end.
template <class T>
T& find(Blocks<T>& blocks, u64 context, u64 at, size_t len, const char* doing) {
    auto next = blocks.upper_bound(at);
    if (next == blocks.begin()) wrong("%s: %#llx is no memory that was given out", doing, static_cast<unsigned long long>(at));
    T& block = std::prev(next)->second;
    if (at - block.at > block.len || len > block.len - (at - block.at)) {
        wrong("%s: %zu bytes at %#llx, which is %llu into %zu bytes", doing, len, static_cast<unsigned long long>(at),
              static_cast<unsigned long long>(at - block.at), block.len);
    }
    if (block.context != context) wrong("%s: memory of another context", doing);
    return block;
}

/// The host has waited.
inline void learn(const Clock& clock) {
    join(host, clock);
    for (auto& [at, block] : device_blocks) block.forget_known();
    for (auto& [at, block] : host_blocks) {
        block.forget_known();
        block.protect();
    }
}

// Touching memory that is protected says why before it ends the process. A signal may come while the maps change, in which case it says
// nothing useful and ends it all the same.
inline struct sigaction other_handler;

inline void on_fault(int number, siginfo_t* info, void* more) {
    const u64 at = reinterpret_cast<u64>(info->si_addr);
    for (const auto& [start, block] : host_blocks) {
        if (at >= start && at - start < block.mapped) wrong("the host touches memory that work under way uses");
    }
    for (const auto& [start, block] : device_blocks) {
        const u64 pages = reinterpret_cast<u64>(block.pages);
        if (at >= pages && at - pages < block.mapped) wrong("a kernel leaves its memory of %zu bytes", block.len);
    }
    if (other_handler.sa_flags & SA_SIGINFO) {
        other_handler.sa_sigaction(number, info, more);
    } else {
        std::signal(number, SIG_DFL);
    }
}

inline void watch_faults() {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &other_handler);
}

}  // namespace stand_in
