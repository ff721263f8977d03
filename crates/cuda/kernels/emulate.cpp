// The kernels as a program for a machine without a GPU: it answers launches that it reads from standard input. Only tests run it.
//
// A request is, in little-endian words of 32 bits: a magic number, which kernel, how many messages (parts, keys), the lengths in bytes
// of ten buffers; then the buffers. The answer is those that a kernel may write: outputs, keys, statuses, sums.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>

#include "keys.h"
#include "packets.h"
#include "parts.h"
#include "single.h"

namespace {

constexpr u32 MAGIC = 0x53574b31;
constexpr u32 MOST = 1u << 30;

enum Buffer { DESCS, SRC, DST, KEYS, AAD, STATUS, PARTS, FIRST_PART, SUMS, UPDATES, BUFFERS };

[[noreturn]] void refuse(const char* why) {
    std::fprintf(stderr, "error: %s\n", why);
    std::exit(2);
}

/// Memory of exactly the size asked for, so that a checker of addresses sees every access past its end.
struct Bytes {
    u32 len = 0;
    std::unique_ptr<void, void (*)(void*)> memory{nullptr, std::free};

    void read(u32 bytes) {
        len = bytes;
        // aligned_alloc wants whole multiples; malloc is aligned to 16 where the kernels run.
        memory.reset(std::malloc(bytes ? bytes : 1));
        if (!memory) refuse("out of memory");
        if (bytes && std::fread(memory.get(), 1, bytes, stdin) != bytes) refuse("a request ends early");
    }

    void write() const {
        if (len && std::fwrite(memory.get(), 1, len, stdout) != len) refuse("the answer cannot be written");
    }

    template <class T>
    T* as() const {
        return static_cast<T*>(memory.get());
    }
};

template <int G>
void run_lanes(const Desc* descs, u32 count, const Memory& memory, u8* status) {
    for (u32 i = 0; i < count; i++) lanes<G>(descs, i, memory, status);
}

/// Poly1305 alone, of whole pieces under r and s as they are in the first key; by the product with r or by that with its power.
void authenticate(u32 count, const Memory& memory, bool by_power) {
    u32 words[8];
    load_key(words, memory.keys, 0);
    const PolyKey key = poly_key(words);
    Sum sum{};
    for (u32 i = 0; i < count; i++) {
        add_piece(sum, memory.src[i]);
        if (by_power) {
            sum = multiply(sum, to_power(r_of(key)));
        } else {
            multiply_r(sum, key);
        }
    }
    memory.dst[0] = tag_of(sum, key);
}

void run(u32 kernel, u32 count, const Bytes (&buffers)[BUFFERS]) {
    const Desc* descs = buffers[DESCS].as<Desc>();
    const Memory memory{buffers[SRC].as<Piece>(), buffers[DST].as<Piece>(), buffers[KEYS].as<Piece>(), buffers[AAD].as<Aad>()};
    u8* status = buffers[STATUS].as<u8>();
    const Part* parts = buffers[PARTS].as<Part>();
    u32* sums = buffers[SUMS].as<u32>();
    Stage stage;
    switch (kernel) {
        case 0:
            for (u32 i = 0; i < count; i++) set_key(buffers[KEYS].as<Piece>(), buffers[UPDATES].as<KeyUpdate>()[i]);
            break;
        case 1:
            for (u32 warp = 0; warp * WARP < count; warp++) single(descs, count, warp, memory, status, stage);
            break;
        case 4: run_lanes<4>(descs, count, memory, status); break;
        case 8: run_lanes<8>(descs, count, memory, status); break;
        case 16: run_lanes<16>(descs, count, memory, status); break;
        case 32: run_lanes<32>(descs, count, memory, status); break;
        case 64:
            for (u32 i = 0; i < count; i++) run_part(descs, parts, i, memory, sums);
            break;
        case 65:
            for (u32 i = 0; i < count; i++) run_end(descs, parts, i, buffers[FIRST_PART].as<u32>(), memory, status, sums);
            break;
        case 66:
            for (u32 i = 0; i < count; i++) {
                spread_packet(descs, buffers[PARTS].as<u32>(), i, buffers[SRC].as<u8>(), buffers[DST].as<Piece>());
            }
            break;
        case 67:
            for (u32 i = 0; i < count; i++) {
                join_packet(descs, buffers[PARTS].as<u32>(), i, buffers[SRC].as<Piece>(), buffers[DST].as<u8>());
            }
            break;
        case 128: authenticate(count, memory, false); break;
        case 129: authenticate(count, memory, true); break;
        default: refuse("no such kernel");
    }
}

}  // namespace

int main() {
    u32 request[3 + BUFFERS];
    for (;;) {
        const std::size_t got = std::fread(request, 1, sizeof request, stdin);
        if (got == 0) return 0;
        if (got != sizeof request || request[0] != MAGIC) refuse("this is no request");
        Bytes buffers[BUFFERS];
        for (int i = 0; i < BUFFERS; i++) {
            if (request[3 + i] > MOST) refuse("a buffer is too long");
            buffers[i].read(request[3 + i]);
        }
        run(request[1], request[2], buffers);
        for (Buffer written : {DST, KEYS, STATUS, SUMS}) buffers[written].write();
        if (std::fflush(stdout) != 0) refuse("the answer cannot be written");
    }
}
