// Contexts: who holds them, whose thread has which, what is left when the last lets go; and what every call begins and ends with.
#pragma once

#include "work.h"

namespace stand_in {

struct Context {
    u64 name = 0;
    u32 held = 0;
};

/// Primary contexts, by device; a name is never used again.
inline std::map<int, Context> contexts;
inline u64 names = 0;
/// Loaded modules, with their contexts.
inline std::map<u64, u64> modules;
inline bool initialised = false;

inline thread_local u64 current = 0;

inline bool is_held(u64 name) {
    for (const auto& [device, context] : contexts) {
        if (context.held > 0 && context.name == name) return true;
    }
    return false;
}

/// Says so if a process ends that holds a context.
inline struct AtEnd {
    ~AtEnd() {
        for (const auto& [device, context] : contexts) {
            if (context.held > 0 && lost == SUCCESS) wrong("the process ends with device %d held %u times", device, context.held);
        }
    }
} at_end;

enum Needs { NOTHING, INITIALISED, CONTEXT };

/// What every call begins and ends with.
template <class F>
int call(const char* name, Needs needs, F body) {
    std::lock_guard<std::mutex> guard(lock);
    control.refresh();
    if (needs != NOTHING && !initialised) wrong("%s: before cuInit", name);
    const bool fails = control.fails(name);
    // A context cannot be kept: letting it go fails after it has gone.
    const bool after = control.now.after || std::strstr(name, "Release");
    if (needs == CONTEXT) {
        if (current == 0) wrong("%s: no context is this thread's", name);
        if (!is_held(current)) wrong("%s: the context of this thread is no more", name);
        if (fails && !after) {
            if (std::strstr(name, "Free") || std::strstr(name, "Destroy") || std::strstr(name, "Unload")) excused++;
        } else if (lost == SUCCESS) {
            run_some();
        }
    }
    // A call that fails tells what went wrong before; all but the first few do once the device is lost.
    if (needs == CONTEXT && lost != SUCCESS && !std::strstr(name, "Free")) return lost;
    if (fails && !after) {
        if (is_sticky(control.now.code)) lose(control.now.code);
        return control.now.code;
    }
    int code = body();
    if (fails && code == SUCCESS) {
        code = control.now.code;
        if (is_sticky(code)) lose(code);
    }
    return code;
}

/// The device of a number, or a complaint.
inline void check_device(int device, const char* name) {
    if (device < 0 || device >= control.now.devices) wrong("%s: device %d of %d", name, device, control.now.devices);
}

template <class T>
size_t count_of(const T& things, u64 context) {
    size_t count = 0;
    for (const auto& [at, thing] : things) count += thing.context == context;
    return count;
}

/// The last who held a context has let go: nothing of it may be left.
inline void close(u64 context) {
    size_t open_queues = 0, loaded = 0;
    for (Queue& queue : queues) {
        if (queue.context == context && queue.alive) open_queues++, queue.alive = false;
    }
    for (auto module = modules.begin(); module != modules.end();) {
        if (module->second == context) loaded++, module = modules.erase(module);
        else ++module;
    }
    const size_t device = count_of(device_blocks, context), pinned = count_of(host_blocks, context);
    const size_t marks = count_of(events, context);
    if (lost == SUCCESS && device + pinned + open_queues + marks + loaded > excused) {
        wrong("leaked: memory of the device %zu, of the host %zu, queues %zu, events %zu, modules %zu", device, pinned, open_queues,
              marks, loaded);
    }
    for (auto block = device_blocks.begin(); block != device_blocks.end();) {
        if (block->second.context != context) {
            ++block;
            continue;
        }
        // Wiped before somebody tried in vain to give it back.
        if (lost == SUCCESS) block->second.check_free("letting the context go");
        block->second.close();
        block = device_blocks.erase(block);
    }
    for (auto block = host_blocks.begin(); block != host_blocks.end();) {
        if (block->second.context != context) {
            ++block;
            continue;
        }
        // The host's memory is wiped whatever happens to the device.
        block->second.check_free("letting the context go");
        block->second.close();
        block = host_blocks.erase(block);
    }
    for (auto event = events.begin(); event != events.end();) {
        if (event->second.context == context) event = events.erase(event);
        else ++event;
    }
    for (const auto& [number, other] : contexts) {
        if (other.held > 0) return;
    }
    queues.clear();
    host.clear();
    excused = 0;
}

}  // namespace stand_in
