// A stand-in for NVIDIA's driver, for tests on machines without a GPU: the calls of the driver API that the crate makes, after its
// documentation, with the kernels' own source for what a GPU would compute.
//
// It is stricter than a driver has to be. Work waits until somebody waits for it; addresses of the device mean nothing to the host; the
// host cannot touch memory that work under way uses; two queues that touch the same bytes, of which neither waits for the other, are a
// race; whatever is given back must be wiped, and all must be given back. A caller that breaks a rule ends with a message.
//
// What it cannot show: how fast anything is, how a GPU's memory orders what a kernel does, and that the PTX is what the source says.

#include <fstream>
#include <iterator>

#include "context.h"
#include "launch.h"

namespace {

using namespace stand_in;

int copy(const char* name, u64 on_device, u64 on_host, size_t bytes, void* stream, bool to_device) {
    const size_t queue = queue_of(current, stream, name);
    if (bytes == 0) wrong("%s: nothing", name);
    DeviceBlock& device = find(device_blocks, current, on_device, bytes, name);
    HostBlock& pinned = find(host_blocks, current, on_host, bytes, name);
    const size_t device_at = on_device - device.at, host_at = on_host - pinned.at;
    // What comes is not there yet.
    if (!to_device && pinned.uses.empty()) {
        for (size_t i = 0; i < bytes; i += PATTERN) std::memcpy(pinned.bytes + host_at + i, pattern(), std::min(PATTERN, bytes - i));
    }
    Work& work = put(queue, [=, &device, &pinned](const Work& done) {
        device.touch(name, done.clock, Access{done.queue, done.piece, device_at, device_at + bytes, to_device});
        pinned.touch(name, done.clock, Access{done.queue, done.piece, host_at, host_at + bytes, !to_device});
        if (to_device) std::memcpy(device.bytes + device_at, pinned.bytes + host_at, bytes);
        else std::memcpy(pinned.bytes + host_at, device.bytes + device_at, bytes);
    });
    device.use(work.queue, work.piece, to_device);
    pinned.use(work.queue, work.piece, !to_device);
    pinned.protect();
    return SUCCESS;
}

/// The text that programs carry.
const std::string& ptx() {
    static const std::string text = [] {
        std::ifstream file(SEALWAY_PTX, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    }();
    if (text.empty()) wrong("cannot read %s", SEALWAY_PTX);
    return text;
}

}  // namespace

extern "C" {

int cuInit(unsigned flags) {
    return call(__func__, NOTHING, [&] {
        if (flags != 0) wrong("cuInit: flags");
        if (control.now.devices < 0) return +NO_DEVICE;
        bool held = false;
        for (const auto& [device, context] : contexts) held |= context.held > 0;
        if (control.now.revive && !held) lost = SUCCESS;
        if (!initialised) watch_faults();
        initialised = true;
        return +SUCCESS;
    });
}

int cuDriverGetVersion(int* version) {
    return call(__func__, NOTHING, [&] { return *version = control.now.driver, +SUCCESS; });
}

int cuGetErrorName(int error, const char** name) {
    *name = name_of(error);
    return *name ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGetCount(int* count) {
    return call(__func__, INITIALISED, [&] { return *count = control.now.devices, +SUCCESS; });
}

int cuDeviceGet(int* device, int ordinal) {
    return call(__func__, INITIALISED, [&] {
        if (ordinal < 0 || ordinal >= control.now.devices) return +INVALID_DEVICE;
        return *device = ordinal, +SUCCESS;
    });
}

int cuDeviceGetName(char* name, int len, int device) {
    return call(__func__, INITIALISED, [&] {
        check_device(device, "cuDeviceGetName");
        if (len < 32) wrong("cuDeviceGetName: no room");
        std::snprintf(name, static_cast<size_t>(len), "Stand-in %d", device);
        return +SUCCESS;
    });
}

int cuDeviceGetPCIBusId(char* id, int len, int device) {
    return call(__func__, INITIALISED, [&] {
        check_device(device, "cuDeviceGetPCIBusId");
        if (len < 13) wrong("cuDeviceGetPCIBusId: no room");
        std::snprintf(id, static_cast<size_t>(len), "0000:%02x:00.0", 0x1b + device);
        return +SUCCESS;
    });
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    return call(__func__, INITIALISED, [&] {
        check_device(device, "cuDeviceTotalMem");
        return *bytes = control.now.memory, +SUCCESS;
    });
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
    return call(__func__, INITIALISED, [&] {
        check_device(device, "cuDeviceGetAttribute");
        switch (attribute) {
            case 16: *value = 2; break;  // multiprocessors
            case 40: *value = 3; break;  // copies beside kernels
            case 75: *value = control.now.major; break;
            case 76: *value = control.now.minor; break;
            default: wrong("cuDeviceGetAttribute: %d", attribute);
        }
        return +SUCCESS;
    });
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
    return call(__func__, INITIALISED, [&] {
        check_device(device, "cuDevicePrimaryCtxRetain");
        if (lost != SUCCESS) return lost;
        Context& primary = contexts[device];
        if (primary.held++ == 0) primary.name = ++names;
        *context = handle(Kind::CONTEXT, primary.name);
        return +SUCCESS;
    });
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    return call(__func__, INITIALISED, [&] {
        check_device(device, "cuDevicePrimaryCtxRelease");
        Context& primary = contexts[device];
        if (primary.held == 0) wrong("a context is released more often than retained");
        if (primary.held == 1 && current == primary.name) wrong("a context is released for good and still this thread's");
        if (--primary.held == 0) close(primary.name);
        return +SUCCESS;
    });
}

int cuCtxSetCurrent(void* context) {
    return call(__func__, INITIALISED, [&] {
        if (!context) return current = 0, +SUCCESS;
        const u64 name = number_of(Kind::CONTEXT, context, "cuCtxSetCurrent");
        if (!is_held(name)) wrong("cuCtxSetCurrent: a context that nobody holds");
        return current = name, +SUCCESS;
    });
}

int cuModuleLoadData(void** module, const void* image) {
    return call(__func__, CONTEXT, [&] {
        const char* text = static_cast<const char*>(image);
        for (size_t i = 0; i < ptx().size(); i++) {
            if (text[i] != ptx()[i]) wrong("cuModuleLoadData: another text from byte %zu on", i);
        }
        if (text[ptx().size()] != 0) wrong("cuModuleLoadData: no zero behind the text");
        modules[++names] = current;
        *module = handle(Kind::MODULE, names);
        return +SUCCESS;
    });
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
    return call(__func__, CONTEXT, [&] {
        const u64 number = number_of(Kind::MODULE, module, "cuModuleGetFunction");
        if (!modules.count(number) || modules[number] != current) wrong("cuModuleGetFunction: a module that is not loaded here");
        for (size_t i = 0; i < std::size(KERNELS); i++) {
            if (std::strcmp(name, KERNELS[i].name) != 0) continue;
            *function = handle(Kind::FUNCTION, number * std::size(KERNELS) + i);
            return +SUCCESS;
        }
        return +NOT_FOUND;
    });
}

int cuModuleUnload(void* module) {
    return call(__func__, CONTEXT, [&] {
        const u64 number = number_of(Kind::MODULE, module, "cuModuleUnload");
        if (!modules.count(number) || modules[number] != current) wrong("cuModuleUnload: a module that is not loaded here");
        modules.erase(number);
        return +SUCCESS;
    });
}

int cuMemAlloc_v2(u64* at, size_t bytes) {
    return call(__func__, CONTEXT, [&] {
        if (bytes == 0) return +INVALID_VALUE;
        u64 taken = bytes;
        for (const auto& [address, block] : device_blocks) taken += block.context == current ? block.len : 0;
        if (taken > control.now.memory) return +OUT_OF_MEMORY;
        *at = take_address(bytes);
        DeviceBlock& block = device_blocks[*at];
        block.context = current;
        block.at = *at;
        block.open(bytes);
        return +SUCCESS;
    });
}

int cuMemFree_v2(u64 at) {
    return call(__func__, CONTEXT, [&] {
        if (lost != SUCCESS) return lost;
        DeviceBlock& block = find(device_blocks, current, at, 0, "cuMemFree");
        if (block.at != at) wrong("cuMemFree: within memory");
        block.check_free("cuMemFree");
        block.close();
        device_blocks.erase(at);
        return +SUCCESS;
    });
}

int cuMemHostAlloc(void** at, size_t bytes, unsigned flags) {
    return call(__func__, CONTEXT, [&] {
        if (bytes == 0) return +INVALID_VALUE;
        if (flags != 0) wrong("cuMemHostAlloc: flags %u", flags);
        HostBlock block;
        block.context = current;
        block.open(bytes);
        *at = reinterpret_cast<void*>(block.at);
        host_blocks[block.at] = block;
        return +SUCCESS;
    });
}

int cuMemFreeHost(void* at) {
    return call(__func__, CONTEXT, [&] {
        const u64 address = reinterpret_cast<u64>(at);
        HostBlock& block = find(host_blocks, current, address, 0, "cuMemFreeHost");
        if (block.at != address) wrong("cuMemFreeHost: within memory");
        block.check_free("cuMemFreeHost");
        block.close();
        host_blocks.erase(address);
        return lost;
    });
}

int cuStreamCreate(void** stream, unsigned flags) {
    return call(__func__, CONTEXT, [&] {
        if (flags > 1) wrong("cuStreamCreate: flags %u", flags);
        queues.emplace_back().context = current;
        *stream = handle(Kind::QUEUE, queues.size() - 1);
        return +SUCCESS;
    });
}

int cuStreamDestroy_v2(void* stream) {
    return call(__func__, CONTEXT, [&] {
        Queue& queue = queues[queue_of(current, stream, "cuStreamDestroy")];
        if (queue.done < queue.put) wrong("cuStreamDestroy: work waits in it");
        queue.alive = false;
        return +SUCCESS;
    });
}

int cuStreamSynchronize(void* stream) {
    return call(__func__, CONTEXT, [&] {
        const size_t queue = queue_of(current, stream, "cuStreamSynchronize");
        run_to(queue, queues[queue].put);
        if (lost == SUCCESS) learn(queues[queue].clock);
        return lost;
    });
}

int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
    return call(__func__, CONTEXT, [&] {
        if (flags != 0) wrong("cuStreamWaitEvent: flags %u", flags);
        const size_t queue = queue_of(current, stream, "cuStreamWaitEvent");
        wait_for(queue, event_of(current, event, "cuStreamWaitEvent"));
        return +SUCCESS;
    });
}

int cuEventCreate(void** event, unsigned flags) {
    return call(__func__, CONTEXT, [&] {
        // Default, or without time.
        if (flags != 0 && flags != 2) wrong("cuEventCreate: flags %u", flags);
        Event made;
        made.context = current;
        made.timing = flags == 0;
        events[++names] = made;
        *event = handle(Kind::EVENT, names);
        return +SUCCESS;
    });
}

int cuEventDestroy_v2(void* event) {
    return call(__func__, CONTEXT, [&] {
        Event& gone = event_of(current, event, "cuEventDestroy");
        if (gone.piece > queues[gone.queue].done) wrong("cuEventDestroy: it waits in a queue");
        events.erase(number_of(Kind::EVENT, event, "cuEventDestroy"));
        return +SUCCESS;
    });
}

int cuEventRecord(void* event, void* stream) {
    return call(__func__, CONTEXT, [&] {
        const size_t queue = queue_of(current, stream, "cuEventRecord");
        record(number_of(Kind::EVENT, event, "cuEventRecord"), event_of(current, event, "cuEventRecord"), queue);
        return +SUCCESS;
    });
}

int cuEventQuery(void* event) {
    return call(__func__, CONTEXT, [&] {
        Event& asked = event_of(current, event, "cuEventQuery");
        if (asked.piece == 0) return +SUCCESS;
        if (asked.shy > 0) return asked.shy--, +NOT_READY;
        run_to(asked.queue, asked.piece);
        if (lost == SUCCESS) learn(asked.clock);
        return lost;
    });
}

int cuEventSynchronize(void* event) {
    return call(__func__, CONTEXT, [&] {
        const Event& marked = event_of(current, event, "cuEventSynchronize");
        if (marked.piece == 0) return +SUCCESS;
        run_to(marked.queue, marked.piece);
        if (lost == SUCCESS) learn(marked.clock);
        return lost;
    });
}

int cuEventElapsedTime(float* ms, void* from, void* to) {
    return call(__func__, CONTEXT, [&] {
        const Event& start = event_of(current, from, "cuEventElapsedTime");
        const Event& end = event_of(current, to, "cuEventElapsedTime");
        for (const Event* event : {&start, &end}) {
            if (!event->timing) wrong("cuEventElapsedTime: an event that measures no time");
            if (event->piece == 0) wrong("cuEventElapsedTime: an event that was not recorded");
            if (!knows(host, event->queue, event->piece)) wrong("cuEventElapsedTime: an event that was not waited for");
        }
        return *ms = static_cast<float>(end.ms - start.ms), +SUCCESS;
    });
}

int cuMemcpyHtoDAsync_v2(u64 to, const void* from, size_t bytes, void* stream) {
    return call(__func__, CONTEXT, [&] { return copy("cuMemcpyHtoDAsync", to, reinterpret_cast<u64>(from), bytes, stream, true); });
}

int cuMemcpyDtoHAsync_v2(void* to, u64 from, size_t bytes, void* stream) {
    return call(__func__, CONTEXT, [&] { return copy("cuMemcpyDtoHAsync", from, reinterpret_cast<u64>(to), bytes, stream, false); });
}

int cuMemsetD8Async(u64 at, unsigned char value, size_t bytes, void* stream) {
    return call(__func__, CONTEXT, [&] {
        const size_t queue = queue_of(current, stream, "cuMemsetD8Async");
        DeviceBlock& block = find(device_blocks, current, at, bytes, "cuMemsetD8Async");
        if (bytes == 0) wrong("cuMemsetD8Async: nothing");
        const size_t start = at - block.at;
        Work& work = put(queue, [=, &block](const Work& done) {
            block.touch("cuMemsetD8Async", done.clock, Access{done.queue, done.piece, start, start + bytes, true});
            std::memset(block.bytes + start, value, bytes);
        });
        block.use(work.queue, work.piece, true);
        return +SUCCESS;
    });
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void* stream, void** arguments, void** extra) {
    return call(__func__, CONTEXT, [&] {
        const u64 number = number_of(Kind::FUNCTION, function, "cuLaunchKernel");
        const u64 module = number / std::size(KERNELS);
        if (!modules.count(module) || modules[module] != current) wrong("cuLaunchKernel: a function of no module here");
        const Kernel& kernel = KERNELS[number % std::size(KERNELS)];
        const size_t queue = queue_of(current, stream, kernel.name);
        if (shared != 0 || extra || !arguments) wrong("%s: it is launched in another way than it wants", kernel.name);
        Launch launch(kernel, current, arguments);
        if (block_x != 128 || block_y != 1 || block_z != 1) wrong("%s: blocks of %u", kernel.name, block_x * block_y * block_z);
        if (grid_x != launch.blocks() || grid_y != 1 || grid_z != 1) {
            wrong("%s: a grid of %u by %u by %u, not %llu", kernel.name, grid_x, grid_y, grid_z,
                  static_cast<unsigned long long>(launch.blocks()));
        }
        launch.use(put(queue, [launch](const Work& done) mutable { launch.run(done); }));
        return +SUCCESS;
    });
}

}  // extern "C"
