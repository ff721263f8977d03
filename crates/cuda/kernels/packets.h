// Between packets as they stand on a wire, at any byte, and messages as the kernels read and write them, at whole pieces.
#pragma once

#include "message.h"

/// The word of 32 bits at any byte. Words that do not begin at a multiple of four are put together from two.
SEALWAY_FN u32 load_word(const u8* from) {
    const u32 skew = reinterpret_cast<u64>(from) % 4;
    const u32* words = reinterpret_cast<const u32*>(from - skew);
    if (skew == 0) return words[0];
    return words[0] >> (8 * skew) | words[1] << (32 - 8 * skew);
}

/// A group copies bytes from anywhere to anywhere, by words of where they go. Nothing outside `to .. to + len` is written.
template <int G>
SEALWAY_FN void copy_bytes(u8* to, const u8* from, u32 len) {
    const u32 skew = reinterpret_cast<u64>(to) % 4;
    const u32 words = (skew + len + 3) / 4;
    each<G>([&](int lane) {
        for (u32 word = lane; word < words; word += G) {
            // The first byte of the word, counted from `to`; before it in the first word.
            const u32 at = 4 * word - skew;
            if (4 * word >= skew && at + 4 <= len) {
                *reinterpret_cast<u32*>(to + at) = load_word(from + at);
                continue;
            }
            for (u32 byte = 0; byte < 4; byte++) {
                if (4 * word + byte >= skew && 4 * word + byte - skew < len) to[at + byte] = from[at + byte];
            }
        }
    });
}

/// Takes a message out of its packet: what is to be sealed, or what is to be opened with its tag.
SEALWAY_FN void spread_packet(const Desc* descs, const u32* places, u32 index, const u8* packets, Piece* src) {
    const Desc desc = load_desc(descs + index);
    const u8* from = packets + places[index];
    Piece* to = src + desc.src;
    copy_bytes<WARP>(reinterpret_cast<u8*>(to), from, desc.len);
    if (opens(desc)) copy_bytes<WARP>(reinterpret_cast<u8*>(to + pieces_of(desc.len)), from + desc.len, 16);
}

/// Puts what became of a message into its packet: the text, and the tag if it was sealed.
SEALWAY_FN void join_packet(const Desc* descs, const u32* places, u32 index, const Piece* dst, u8* packets) {
    const Desc desc = load_desc(descs + index);
    u8* to = packets + places[index];
    const Piece* from = dst + desc.dst;
    copy_bytes<WARP>(to, reinterpret_cast<const u8*>(from), desc.len);
    if (!opens(desc)) copy_bytes<WARP>(to + desc.len, reinterpret_cast<const u8*>(from + pieces_of(desc.len)), 16);
}
