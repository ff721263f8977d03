// Counts what a program for 64-bit Arm executes, by function and kind of instruction: a plugin of qemu's user-mode emulation.
//
// Written for version 1 of the interface, that of qemu 5 to 8. When the program ends, the file named by the argument `out` gets a line
// for each function that has run: the counts of the kinds, in the order of `enum kind`, and the name.
//
// Counters are not atomic: programs of one thread only.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// From qemu/include/qemu/qemu-plugin.h, which Debian does not ship: what is used here.
typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op, void *, uint64_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);

int qemu_plugin_version = 1;

enum kind { VECTOR, VECTOR_MEMORY, MULTIPLY, INTEGER, MEMORY, BRANCH, KINDS };

struct function {
    struct function *next;
    const char *name;
    uint64_t counts[KINDS];
};

static struct function *functions;
static const char *out_path;

// Arm ARM C4.1: bits 25 to 28 name the group, and bit 26 of a load or store says whether it is one of vectors.
static enum kind kind_of(uint32_t word) {
    unsigned group = word >> 25 & 15;
    if ((group & 0x7) == 0x7) return VECTOR;
    if ((group & 0x5) == 0x4) return word >> 26 & 1 ? VECTOR_MEMORY : MEMORY;
    if ((group & 0xe) == 0xa) return BRANCH;
    if ((word >> 24 & 0x1f) == 0x1b) return MULTIPLY;
    return INTEGER;
}

// Names last as long as the program, and those of one function are one string or equal.
static struct function *function_of(const char *name) {
    if (!name || !*name) name = "(libraries)";
    for (struct function *known = functions; known; known = known->next)
        if (known->name == name || !strcmp(known->name, name)) return known;
    struct function *made = calloc(1, sizeof *made);
    if (!made) abort();
    *made = (struct function){.next = functions, .name = name};
    return functions = made;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        uint32_t word;
        memcpy(&word, qemu_plugin_insn_data(instruction), sizeof word);
        uint64_t *count = &function_of(qemu_plugin_insn_symbol(instruction))->counts[kind_of(word)];
        qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64, count, 1);
    }
}

static void on_exit_of_program(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    FILE *out = fopen(out_path, "w");
    if (!out) {
        perror(out_path);
        return;
    }
    for (struct function *f = functions; f; f = f->next) {
        for (int kind = 0; kind < KINDS; kind++) fprintf(out, "%llu ", (unsigned long long)f->counts[kind]);
        fprintf(out, "%s\n", f->name);
    }
    fclose(out);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4)) out_path = argv[i] + 4;
    if (!out_path) {
        fprintf(stderr, "the plugin needs out=FILE\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
    return 0;
}
