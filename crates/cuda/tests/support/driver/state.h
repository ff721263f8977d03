// What a driver that is not there is told to be, and what it complains about.
//
// A test writes a file and names it in SEALWAY_STAND_IN; it is read anew at every call. Words of the form `key=value`, any of:
//
//   driver=12080        the version of CUDA            devices=1     how many there are
//   compute=9.0         compute capability             memory=BYTES  of each device
//   seed=0              0: work is done as late as can be; else some of it earlier, at random
//   wiped=1             complain about secrets in memory that is given back
//   revive=0            1: a device that was lost is there again once nothing holds its context (a real one wants another process)
//   fail=NAME,N,CODE    the N-th call of NAME from now on, counted from 1, gives CODE and does nothing; `work` is the N-th piece of
//                       work that is done. With `,after` it does what it should, and gives CODE.
//
// When the call has failed, the word `fired` is put behind the rest.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace stand_in {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using std::size_t;

enum Code : int {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    NOT_FOUND = 500,
    NOT_READY = 600,
};

/// Says what the caller did wrong, and ends the process.
[[noreturn, gnu::format(printf, 1, 2)]] inline void wrong(const char* format, ...) {
    // In one piece, since others may write too.
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "the driver's stand-in: %s\n", text);
    std::abort();
}

/// Codes of which the documentation says that the process must end before CUDA can be used again.
inline bool is_sticky(int code) {
    for (int sticky : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 911}) {
        if (code == sticky) return true;
    }
    return false;
}

inline const char* name_of(int code) {
    switch (code) {
        case 0: return "CUDA_SUCCESS";
        case 1: return "CUDA_ERROR_INVALID_VALUE";
        case 2: return "CUDA_ERROR_OUT_OF_MEMORY";
        case 3: return "CUDA_ERROR_NOT_INITIALIZED";
        case 4: return "CUDA_ERROR_DEINITIALIZED";
        case 46: return "CUDA_ERROR_DEVICE_UNAVAILABLE";
        case 100: return "CUDA_ERROR_NO_DEVICE";
        case 101: return "CUDA_ERROR_INVALID_DEVICE";
        case 201: return "CUDA_ERROR_INVALID_CONTEXT";
        case 214: return "CUDA_ERROR_ECC_UNCORRECTABLE";
        case 218: return "CUDA_ERROR_INVALID_PTX";
        case 222: return "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
        case 304: return "CUDA_ERROR_OPERATING_SYSTEM";
        case 400: return "CUDA_ERROR_INVALID_HANDLE";
        case 500: return "CUDA_ERROR_NOT_FOUND";
        case 600: return "CUDA_ERROR_NOT_READY";
        case 700: return "CUDA_ERROR_ILLEGAL_ADDRESS";
        case 719: return "CUDA_ERROR_LAUNCH_FAILED";
        case 801: return "CUDA_ERROR_NOT_SUPPORTED";
        case 999: return "CUDA_ERROR_UNKNOWN";
        default: return nullptr;
    }
}

struct Settings {
    int driver = 12080;
    int devices = 1;
    int major = 9, minor = 0;
    u64 memory = u64{4} << 30;
    u64 seed = 0;
    bool wiped = true;
    bool revive = false;
    std::string fail;
    long nth = 0, times = 1;
    int code = 0;
    bool after = false;
    bool fired = false;
};

/// Noise that is the same every time (SplitMix64).
class Noise {
  public:
    explicit Noise(u64 seed) : state(seed) {}

    u64 next() {
        state += 0x9e3779b97f4a7c15;
        u64 z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }

    size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }

  private:
    u64 state;
};

class Control {
  public:
    Settings now;
    Noise noise{0};

    /// Reads the file again if it has changed.
    void refresh() {
        if (!opened) {
            opened = true;
            const char* path = std::getenv("SEALWAY_STAND_IN");
            if (path && (file = open(path, O_RDWR | O_APPEND | O_CLOEXEC)) < 0) wrong("cannot open %s", path);
        }
        if (file < 0) return;
        char text[512];
        const ssize_t got = pread(file, text, sizeof text, 0);
        if (got < 0 || got == sizeof text) wrong("what it is told is not to be read");
        if (std::string_view(text, static_cast<size_t>(got)) == seen) return;
        seen.assign(text, static_cast<size_t>(got));
        parse();
    }

    /// True if this call, or piece of work, is the one that fails.
    bool fails(const char* name) {
        if (now.fail != name) return false;
        if (now.fired) return more > 0 && more-- > 0;
        if (++calls != now.nth) return false;
        now.fired = true;
        more = now.times - 1;
        const char word[] = " fired\n";
        if (write(file, word, sizeof word - 1) != sizeof word - 1) wrong("cannot say that it failed");
        return true;
    }

  private:
    bool opened = false;
    int file = -1;
    std::string seen;
    long calls = 0;
    /// How often it fails from here on.
    long more = 0;

    void parse() {
        const u64 seed = now.seed;
        const bool was_fired = now.fired;
        now = Settings{};
        std::istringstream words(seen);
        for (std::string word; words >> word;) {
            const size_t split = word.find('=');
            const std::string key = word.substr(0, split), value = split == word.npos ? "" : word.substr(split + 1);
            if (key == "driver") now.driver = std::stoi(value);
            else if (key == "devices") now.devices = std::stoi(value);
            else if (key == "compute") std::sscanf(value.c_str(), "%d.%d", &now.major, &now.minor);
            else if (key == "memory") now.memory = std::stoull(value);
            else if (key == "seed") now.seed = std::stoull(value);
            else if (key == "wiped") now.wiped = value != "0";
            else if (key == "revive") now.revive = value == "1";
            else if (key == "fired") now.fired = true;
            else if (key == "times") now.times = std::stol(value);
            else if (key == "fail") fail(value);
            else wrong("it is told to be `%s`", word.c_str());
        }
        if (now.seed != seed) noise = Noise(now.seed);
        // Its own word changes the file too.
        if (!(now.fired && was_fired)) calls = more = 0;
    }

    void fail(const std::string& value) {
        const size_t first = value.find(','), second = value.find(',', first + 1);
        if (second == value.npos) wrong("it is told to fail at `%s`", value.c_str());
        now.fail = value.substr(0, first);
        now.nth = std::stol(value.substr(first + 1));
        now.code = std::stoi(value.substr(second + 1));
        now.after = value.find(",after") != value.npos;
    }
};

inline Control control;

/// Of everything.
inline std::mutex lock;

/// The error after which every call fails, or none.
inline int lost = SUCCESS;

/// Things that could not be given back because a test wanted so.
inline size_t excused = 0;

}  // namespace stand_in
