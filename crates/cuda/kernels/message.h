// What a message is to a kernel, and the steps that all kernels share.
#pragma once

#include "chacha.h"
#include "poly.h"

/// What to do with a message. The host writes these; `src/plan.rs` holds the same layout.
struct alignas(16) Desc {
    /// Where the text starts, in pieces from the start of the arena it is read from; likewise where it is written to.
    u32 src, dst;
    /// Bytes of text, without the tag.
    u32 len;
    /// Which key.
    u32 slot;
    u32 nonce[3];
    /// Bit 0: open instead of seal. The rest: 0, or 1 + the index of its associated data.
    u32 what;
};

/// Associated data: first piece in the arena that is read from, and bytes.
struct Aad {
    u32 piece, len;
};

constexpr u8 DONE = 1;
constexpr u8 UNAUTHENTIC = 2;

/// Everything that lies in memory.
struct Memory {
    const Piece* src;
    Piece* dst;
    const Piece* keys;
    const Aad* aad;
};

SEALWAY_FN bool opens(const Desc& desc) { return desc.what & 1; }

SEALWAY_FN u32 pieces_of(u32 bytes) { return bytes / 16 + (bytes % 16 != 0); }

/// Two loads of 16 bytes.
SEALWAY_FN Desc load_desc(const Desc* from) {
    const Piece* at = reinterpret_cast<const Piece*>(from);
    const Piece a = load(at), b = load(at + 1);
    return Desc{a.w[0], a.w[1], a.w[2], a.w[3], {b.w[0], b.w[1], b.w[2]}, b.w[3]};
}

SEALWAY_FN void load_key(u32 (&key)[8], const Piece* keys, u32 slot) {
    const Piece* at = keys + static_cast<u64>(slot) * 2;
    const Piece a = load(at), b = load(at + 1);
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) {
        key[i] = a.w[i];
        key[4 + i] = b.w[i];
    }
}

SEALWAY_FN PolyKey one_time_key(const Block& block) {
    const u32 words[8] = {block.w[0], block.w[1], block.w[2], block.w[3], block.w[4], block.w[5], block.w[6], block.w[7]};
    return poly_key(words);
}

/// The first `bytes` of a piece, at most 16, zeros behind them.
SEALWAY_FN Piece head(Piece piece, u32 bytes) {
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) {
        const int bits = 8 * static_cast<int>(bytes) - 32 * i;
        piece.w[i] &= bits <= 0 ? 0u : bits >= 32 ? ~0u : ~(~0u << bits);
    }
    return piece;
}

/// A piece of which `bytes` are left from its start on. Only the last of a message costs anything.
SEALWAY_FN Piece within(const Piece& piece, u32 bytes) { return bytes >= 16 ? piece : head(piece, bytes); }

/// Absorbs the associated data of a message; their length in bytes.
SEALWAY_FN u32 absorb_aad(Sum& sum, const PolyKey& key, const Desc& desc, const Memory& memory) {
    const u32 index = desc.what >> 1;
    if (index == 0) return 0;
    const Aad aad = memory.aad[index - 1];
    for (u32 i = 0; i < pieces_of(aad.len); i++) {
        absorb(sum, within(load(memory.src + aad.piece + i), aad.len - 16 * i), key);
    }
    return aad.len;
}

SEALWAY_FN u32 aad_len(const Desc& desc, const Memory& memory) {
    const u32 index = desc.what >> 1;
    return index == 0 ? 0 : memory.aad[index - 1].len;
}

/// The last piece (RFC 8439 section 2.8): both lengths.
SEALWAY_FN void absorb_lengths(Sum& sum, const PolyKey& key, u32 aad, u32 text) { absorb(sum, Piece{{aad, 0, text, 0}}, key); }

/// Piece `i` of a block of text, `bytes` of which are left: its output with zeros behind the end. `sealed` becomes what the
/// authenticator sees.
SEALWAY_FN Piece xor_piece(const Piece& in, const Block& block, int i, u32 bytes, bool opening, Piece& sealed) {
    Piece out;
SEALWAY_UNROLL()
    for (int word = 0; word < 4; word++) out.w[word] = in.w[word] ^ block.w[4 * i + word];
SEALWAY_UNROLL()
    for (int word = 0; word < 4; word++) sealed.w[word] = opening ? in.w[word] : out.w[word];
    if (bytes < 16) {
        out = head(out, bytes);
        sealed = head(sealed, bytes);
    }
    return out;
}

/// Ends a message: writes its tag, or says whether the one that came is right. The comparison looks at all bytes.
SEALWAY_FN bool settle(const Desc& desc, const Piece& tag, const Memory& memory) {
    const u32 end = pieces_of(desc.len);
    if (!opens(desc)) {
        store(memory.dst + desc.dst + end, tag);
        return true;
    }
    const Piece sent = load(memory.src + desc.src + end);
    u32 differs = 0;
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) differs |= sent.w[i] ^ tag.w[i];
    return differs == 0;
}
