// Kernels: what they are launched with, whether all that they would reach is there, and the same source that a GPU runs.
#pragma once

#include <numeric>

#include "work.h"

// The kernels' own source, as plain C++. Its names are its own.
namespace kernels {
#include "keys.h"
#include "packets.h"
#include "parts.h"
#include "single.h"
}  // namespace kernels

namespace stand_in {

enum class What { LANES, PARTS, ENDS, SET_KEYS, SPREAD, JOIN };

struct Kernel {
    const char* name;
    What what;
    /// Threads for each message, part or key.
    u32 group;
};

constexpr Kernel KERNELS[] = {
    {"sealway_lanes1", What::LANES, 1},   {"sealway_lanes4", What::LANES, 4},   {"sealway_lanes8", What::LANES, 8},
    {"sealway_lanes16", What::LANES, 16}, {"sealway_lanes32", What::LANES, 32}, {"sealway_parts", What::PARTS, 32},
    {"sealway_ends", What::ENDS, 32},     {"sealway_set_keys", What::SET_KEYS, 1},
    {"sealway_spread", What::SPREAD, 32}, {"sealway_join", What::JOIN, 32},
};

/// A parameter: memory from an address on.
struct Region {
    DeviceBlock* block = nullptr;
    size_t at = 0;

    u8* bytes() const { return block->bytes + at; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(bytes());
    }
};

/// What a launch touches of a region, from its first to its last byte.
struct Touched {
    size_t from = SIZE_MAX, to = 0;

    void add(size_t at, size_t len) {
        if (len == 0) return;
        from = std::min(from, at);
        to = std::max(to, at + len);
    }
};

class Launch {
  public:
    /// Reads the arguments, each through its pointer, as the entries in kernels.cu have them.
    Launch(const Kernel& kernel, u64 context, void** arguments) : kernel(kernel), context(context), arguments(arguments) {
        switch (kernel.what) {
            case What::LANES:
                descs = region(16), count = number(), src = region(16), dst = region(16), keys = region(16), aad = region(8);
                status = region(1);
                break;
            case What::PARTS:
                descs = region(16), parts = region(16), count = number(), src = region(16), dst = region(16), keys = region(16);
                sums = region(4);
                break;
            case What::ENDS:
                descs = region(16), parts = region(16), count = number(), first_part = region(4), src = region(16);
                dst = region(16), keys = region(16), aad = region(8), status = region(1), sums = region(4);
                break;
            case What::SET_KEYS: keys = region(16), updates = region(16), count = number(); break;
            case What::SPREAD:
                descs = region(16), places = region(4), count = number(), packets = region(4), src = region(16);
                break;
            case What::JOIN:
                descs = region(16), places = region(4), count = number(), dst = region(16), packets = region(4);
                break;
        }
        this->arguments = nullptr;
        if (count == 0) wrong("%s: for nothing", kernel.name);
    }

    u64 blocks() const { return (u64{count} * kernel.group + 127) / 128; }

    /// Whatever it may touch cannot be given back before it is done.
    void use(const Work& work) const {
        for (const Region* region : regions()) {
            if (region->block) region->block->use(work.queue, work.piece, true);
        }
    }

    /// Looks at everything that it will reach, then runs.
    void run(const Work& work) {
        switch (kernel.what) {
            case What::LANES: check_messages(); break;
            case What::PARTS: check_parts(); break;
            case What::ENDS: check_ends(); break;
            case What::SET_KEYS: check_keys(); break;
            case What::SPREAD:
            case What::JOIN: check_packets(); break;
        }
        touch(work);
        compute();
    }

  private:
    const Kernel& kernel;
    u64 context;
    void** arguments;
    u32 count = 0;
    Region descs, src, dst, keys, aad, status, parts, first_part, sums, updates, places, packets;
    Touched read_descs, read_src, write_dst, read_keys, write_keys, read_aad, write_status, read_parts, read_first, read_sums,
        write_sums, read_updates, write_src, read_dst, read_places, read_packets, write_packets;

    std::vector<const Region*> regions() const {
        return {&descs, &src, &dst, &keys, &aad, &status, &parts, &first_part, &sums, &updates, &places, &packets};
    }

    void* next() {
        void* at = *arguments++;
        if (!at || reinterpret_cast<u64>(at) % 8 != 0) wrong("%s: an argument is missing", kernel.name);
        return at;
    }

    u32 number() {
        u32 value;
        std::memcpy(&value, next(), sizeof value);
        return value;
    }

    Region region(size_t alignment) {
        u64 at;
        std::memcpy(&at, next(), sizeof at);
        DeviceBlock& block = find(device_blocks, context, at, 0, kernel.name);
        if (at % alignment != 0) wrong("%s: memory that is not aligned to %zu bytes", kernel.name, alignment);
        return Region{&block, static_cast<size_t>(at - block.at)};
    }

    void reach(const Region& region, Touched& touched, u64 at, u64 len, const char* what) {
        const u64 room = region.block->len - region.at;
        if (at > room || len > room - at) {
            wrong("%s: it would reach %s from %llu on, %llu bytes of %llu", kernel.name, what, static_cast<unsigned long long>(at),
                  static_cast<unsigned long long>(len), static_cast<unsigned long long>(room));
        }
        touched.add(region.at + at, len);
    }

    const kernels::Desc& desc(u32 index) {
        reach(descs, read_descs, u64{index} * sizeof(kernels::Desc), sizeof(kernels::Desc), "a descriptor");
        return descs.as<kernels::Desc>()[index];
    }

    /// All that a kernel reaches for a message: its text, and what ends it.
    void check_message(const kernels::Desc& desc, bool ends) {
        const u64 text = u64{kernels::pieces_of(desc.len)} * 16;
        const bool opens = kernels::opens(desc);
        reach(keys, read_keys, u64{desc.slot} * 32, 32, "a key");
        reach(src, read_src, u64{desc.src} * 16, text, "a text");
        reach(dst, write_dst, u64{desc.dst} * 16, text, "an output");
        if (!ends) return;
        if (opens) reach(src, read_src, u64{desc.src} * 16 + text, 16, "a tag");
        else reach(dst, write_dst, u64{desc.dst} * 16 + text, 16, "a tag to write");
        if (const u32 index = desc.what >> 1) {
            reach(aad, read_aad, u64{index - 1} * sizeof(kernels::Aad), sizeof(kernels::Aad), "an entry of associated data");
            const kernels::Aad& entry = aad.as<kernels::Aad>()[index - 1];
            reach(src, read_src, u64{entry.piece} * 16, u64{kernels::pieces_of(entry.len)} * 16, "associated data");
        }
    }

    void check_messages() {
        for (u32 i = 0; i < count; i++) check_message(desc(i), true);
        reach(status, write_status, 0, count, "statuses");
    }

    kernels::Part part(u32 index) {
        reach(parts, read_parts, u64{index} * sizeof(kernels::Part), sizeof(kernels::Part), "a part");
        return parts.as<kernels::Part>()[index];
    }

    void check_part(const kernels::Part& part, const kernels::Desc& desc) {
        const u64 blocks = (u64{desc.len} + 63) / 64;
        if (part.blocks == 0 || part.blocks > kernels::PART_BLOCKS || u64{part.first_block} + part.blocks > blocks) {
            wrong("%s: blocks %u and on, %u of %llu", kernel.name, part.first_block, part.blocks,
                  static_cast<unsigned long long>(blocks));
        }
    }

    void check_parts() {
        std::vector<u32> sums_of;
        for (u32 i = 0; i < count; i++) {
            const kernels::Part one = part(i);
            const kernels::Desc& message = desc(one.desc);
            check_message(message, false);
            check_part(one, message);
            reach(sums, write_sums, u64{one.sum} * kernels::SUM_WORDS * 4, kernels::SUM_WORDS * 4, "a sum");
            sums_of.push_back(one.sum);
        }
        std::sort(sums_of.begin(), sums_of.end());
        if (std::adjacent_find(sums_of.begin(), sums_of.end()) != sums_of.end()) wrong("%s: one place for two sums", kernel.name);
    }

    void check_ends() {
        reach(first_part, read_first, 0, (u64{count} + 1) * 4, "numbers of parts");
        for (u32 i = 0; i < count; i++) {
            const u32* first = first_part.as<u32>() + i;
            if (first[1] <= first[0]) wrong("%s: a message of no parts", kernel.name);
            u64 blocks = 0;
            for (u32 at = first[0]; at < first[1]; at++) {
                const kernels::Part one = part(at);
                check_part(one, desc(i));
                if (one.desc != i || one.first_block != blocks) wrong("%s: a part is not where it belongs", kernel.name);
                blocks += one.blocks;
                reach(sums, read_sums, u64{one.sum} * kernels::SUM_WORDS * 4, kernels::SUM_WORDS * 4, "a sum");
            }
            if (blocks != (u64{desc(i).len} + 63) / 64) wrong("%s: parts that are not the whole", kernel.name);
        }
        check_messages();
    }

    void check_keys() {
        reach(updates, read_updates, 0, u64{count} * sizeof(kernels::KeyUpdate), "updates");
        std::vector<u32> slots;
        for (u32 i = 0; i < count; i++) {
            const u32 slot = updates.as<kernels::KeyUpdate>()[i].slot;
            reach(keys, write_keys, u64{slot} * 32, 32, "a slot");
            slots.push_back(slot);
        }
        std::sort(slots.begin(), slots.end());
        if (std::adjacent_find(slots.begin(), slots.end()) != slots.end()) wrong("%s: two keys for a slot at once", kernel.name);
    }

    /// All that is moved between packets and messages.
    void check_packets() {
        const bool out = kernel.what == What::JOIN;
        for (u32 i = 0; i < count; i++) {
            const kernels::Desc& message = desc(i);
            reach(places, read_places, u64{i} * 4, 4, "a place");
            const u32 at = places.as<u32>()[i];
            const u64 text = u64{kernels::pieces_of(message.len)} * 16;
            const u64 tag = kernels::opens(message) != out ? 16 : 0;
            reach(packets, out ? write_packets : read_packets, at, message.len + tag, "a packet");
            reach(out ? dst : src, out ? read_dst : write_src, u64{out ? message.dst : message.src} * 16, text + tag, "a message");
        }
    }

    void touch(const Work& work) {
        auto each = [&](const Region& region, const Touched& touched, bool writes) {
            if (touched.from >= touched.to) return;
            region.block->touch(kernel.name, work.clock, Access{work.queue, work.piece, touched.from, touched.to, writes});
        };
        each(descs, read_descs, false), each(src, read_src, false), each(dst, write_dst, true), each(keys, read_keys, false);
        each(keys, write_keys, true), each(aad, read_aad, false), each(status, write_status, true), each(parts, read_parts, false);
        each(first_part, read_first, false), each(sums, read_sums, false), each(sums, write_sums, true);
        each(updates, read_updates, false), each(src, write_src, true), each(dst, read_dst, false);
        each(places, read_places, false), each(packets, read_packets, false), each(packets, write_packets, true);
    }

    /// Groups run in any order.
    void compute() {
        const u32 groups = kernel.what == What::LANES && kernel.group == 1 ? (count + 31) / 32 : count;
        std::vector<u32> order(groups);
        std::iota(order.begin(), order.end(), 0u);
        for (u32 i = groups; control.now.seed != 0 && i > 1; i--) std::swap(order[i - 1], order[control.noise.below(i)]);
        for (u32 index : order) compute(index);
    }

    void compute(u32 index) {
        using namespace kernels;
        const Memory memory{src.block ? src.as<Piece>() : nullptr, dst.block ? dst.as<Piece>() : nullptr, keys.block ? keys.as<Piece>() : nullptr,
                            aad.block ? aad.as<Aad>() : nullptr};
        const Desc* from = descs.block ? descs.as<Desc>() : nullptr;
        switch (kernel.what) {
            case What::LANES:
                switch (kernel.group) {
                    case 1: {
                        Stage stage;
                        return single(from, count, index, memory, status.bytes(), stage);
                    }
                    case 4: return lanes<4>(from, index, memory, status.bytes());
                    case 8: return lanes<8>(from, index, memory, status.bytes());
                    case 16: return lanes<16>(from, index, memory, status.bytes());
                    default: return lanes<32>(from, index, memory, status.bytes());
                }
            case What::PARTS: return run_part(from, parts.as<Part>(), index, memory, sums.as<u32>());
            case What::ENDS:
                return run_end(from, parts.as<Part>(), index, first_part.as<u32>(), memory, status.bytes(), sums.as<u32>());
            case What::SPREAD: return spread_packet(from, places.as<u32>(), index, packets.bytes(), src.as<Piece>());
            case What::JOIN: return join_packet(from, places.as<u32>(), index, dst.as<Piece>(), packets.bytes());
            case What::SET_KEYS: return set_key(keys.as<Piece>(), updates.as<KeyUpdate>()[index]);
        }
    }
};

}  // namespace stand_in
