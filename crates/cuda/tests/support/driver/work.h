// Queues of work and events. Work is done when somebody waits for it, and then only what that needs.
#pragma once

#include <chrono>
#include <deque>
#include <functional>

#include "memory.h"

namespace stand_in {

/// A piece of work in a queue.
struct Work {
    size_t queue = 0;
    /// Counted from 1 in its queue.
    u64 piece = 0;
    /// What is done before it.
    Clock clock;
    /// Done not before this piece of that queue.
    bool waits = false;
    size_t for_queue = 0;
    u64 for_piece = 0;
    std::function<void(const Work&)> run;
};

struct Queue {
    u64 context = 0;
    bool alive = true;
    std::deque<Work> work;
    u64 put = 0, done = 0;
    /// What is done once all that was put in is.
    Clock clock;
};

struct Event {
    u64 context = 0;
    bool timing = false;
    /// What it marks: nothing, or a piece of work of its own.
    u64 piece = 0;
    size_t queue = 0;
    Clock clock;
    /// When that was done.
    double ms = 0;
    /// How often a query says that it is not, whatever is true.
    size_t shy = 0;
};

/// All there ever were, by number; handles are made of the number.
inline std::deque<Queue> queues;
inline std::map<u64, Event> events;

/// The device's clock: a microsecond for each piece of work, and as long as it takes here.
inline double clock_ms = 0;

/// The device has failed: nothing more is done, and nothing is in anybody's way.
inline void lose(int code) {
    lost = code;
    for (Queue& queue : queues) queue.work.clear();
    for (auto& [at, block] : host_blocks) block.protect();
}

inline Work& put(size_t number, std::function<void(const Work&)> run) {
    Queue& queue = queues[number];
    join(queue.clock, host);
    queue.put++;
    Clock own(number + 1);
    own[number] = queue.put;
    join(queue.clock, own);
    Work work;
    work.queue = number;
    work.piece = queue.put;
    work.clock = queue.clock;
    work.run = std::move(run);
    queue.work.push_back(std::move(work));
    return queue.work.back();
}

/// Does the first piece of work of a queue.
inline void run_first(size_t number) {
    const Work work = std::move(queues[number].work.front());
    queues[number].work.pop_front();
    if (control.fails("work")) return lose(control.now.code);
    const auto start = std::chrono::steady_clock::now();
    clock_ms += 0.001;
    if (work.run) work.run(work);
    clock_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    queues[number].done = work.piece;
}

/// Does all that has to be done before a piece of work, and it.
inline void run_to(size_t number, u64 piece) {
    while (lost == SUCCESS && queues[number].done < piece) {
        const Work& first = queues[number].work.front();
        if (first.waits) run_to(first.for_queue, first.for_piece);
        if (lost == SUCCESS) run_first(number);
    }
}

/// Does some of what could be done, at random.
inline void run_some() {
    if (control.now.seed == 0 || queues.empty()) return;
    for (size_t turns = control.noise.below(4); turns > 0 && lost == SUCCESS; turns--) {
        const size_t number = control.noise.below(queues.size());
        if (queues[number].work.empty()) continue;
        const Work& first = queues[number].work.front();
        if (!first.waits || queues[first.for_queue].done >= first.for_piece) run_first(number);
    }
}

/// Handles are no addresses either: what they are, which one, and a mark.
enum class Kind : u64 { CONTEXT = 1, MODULE, FUNCTION, QUEUE, EVENT };

inline void* handle(Kind kind, u64 number) {
    return reinterpret_cast<void*>(u64{0x00ee} << 48 | static_cast<u64>(kind) << 40 | number << 4 | 0xb);
}

/// The number of a handle, of the kind that it must be.
inline u64 number_of(Kind kind, const void* from, const char* doing) {
    const u64 bits = reinterpret_cast<u64>(from);
    const u64 number = bits >> 4 & 0xf'ffff'ffff;
    if (handle(kind, number) != from) wrong("%s: %#llx is no handle of this kind", doing, static_cast<unsigned long long>(bits));
    return number;
}

inline size_t queue_of(u64 context, const void* from, const char* doing) {
    const u64 number = number_of(Kind::QUEUE, from, doing);
    if (number >= queues.size() || !queues[number].alive) wrong("%s: a queue that is not, or no more", doing);
    if (queues[number].context != context) wrong("%s: a queue of another context", doing);
    return static_cast<size_t>(number);
}

inline Event& event_of(u64 context, const void* from, const char* doing) {
    auto found = events.find(number_of(Kind::EVENT, from, doing));
    if (found == events.end()) wrong("%s: an event that is not, or no more", doing);
    if (found->second.context != context) wrong("%s: an event of another context", doing);
    return found->second;
}

inline void record(u64 name, Event& event, size_t number) {
    Work& work = put(number, [name](const Work& done) {
        // It may have been recorded again since.
        auto found = events.find(name);
        if (found != events.end() && found->second.piece == done.piece && found->second.queue == done.queue) {
            found->second.ms = clock_ms;
        }
    });
    event.queue = number;
    event.piece = work.piece;
    event.clock = work.clock;
    event.shy = control.noise.below(4);
}

/// What the event marks by now has to be done before what is put in from now on.
inline void wait_for(size_t number, const Event& event) {
    if (event.piece == 0) return;
    Work& work = put(number, nullptr);
    work.waits = true;
    work.for_queue = event.queue;
    work.for_piece = event.piece;
    join(work.clock, event.clock);
    join(queues[number].clock, event.clock);
}

}  // namespace stand_in
