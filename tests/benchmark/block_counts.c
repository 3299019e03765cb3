// A plugin of QEMU that counts the blocks of instructions of one execute().
//
//     qemu-system-arm -plugin block_counts.so,output=FILE,starts=N,polls=NAME,executor=NAME ...
//
// executor= names a function that calls kernels, and may be given up to four times. polls= names
// the poll function. The plugin counts from the Nth call of pt_counter_start to the next call of
// pt_counter_stop. For each kernel that the executor calls, it counts how often a block ran between
// which two other blocks, and writes:
//
//     block INDEX FIRST LAST NAME           addresses of a block of instructions, and its function
//     count CALL BEFORE BLOCK NEXT TIMES    indexes of the call, 0 before the first, and of blocks
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

// Declare the parts of QEMU's qemu-plugin.h, version 1, that the plugin needs: QEMU 7 and 8.
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed)(unsigned cpu, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed, int flags, void *data);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);
EXPORT int qemu_plugin_version = 1;

typedef struct block {
    uint32_t index, first, last; // addresses of instructions
    bool starts, stops, polls;
    bool calls; // true if it ends with a call of a kernel by the executor, or of poll
} block;

typedef struct entry {
    uint32_t call, before, block, next;
    uint64_t times;
} entry;

enum { ENTRIES = 1 << 20 };

static FILE *output;
static char executors[4][64], poll[64]; // names of functions
static uint32_t starts_to_go, first_start, n_blocks, n_calls, n_entries;
static bool counting;
static const block *before_last, *last;
static entry entries[ENTRIES];

static void end(const char *reason) {
    fprintf(stderr, "block_counts: %s\n", reason);
    exit(1);
}

static void count(const block *before, const block *one, const block *next) {
    uint64_t hash = n_calls * UINT64_C(0x9e3779b97f4a7c15) + before->index;
    hash = (hash * UINT64_C(0xff51afd7ed558ccd) ^ one->index) * UINT64_C(0xc4ceb9fe1a85ec53);
    hash = (hash ^ next->index) * UINT64_C(0x9e3779b97f4a7c15);
    entry *e = &entries[hash >> 44];
    while (e->times != 0 && (e->call != n_calls || e->before != before->index ||
                             e->block != one->index || e->next != next->index)) {
        e = e == entries + ENTRIES - 1 ? entries : e + 1;
    }
    if (e->times++ == 0) {
        *e = (entry){n_calls, before->index, one->index, next->index, 1};
        if (++n_entries > ENTRIES / 2) {
            end("too many kinds of blocks");
        }
    }
}

static void write_counts(void) {
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const entry *e = &entries[i];
        if (e->times != 0) {
            fprintf(output, "count %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 "\n",
                    e->call, e->before, e->block, e->next, e->times);
        }
    }
    fclose(output);
    output = NULL;
}

static void execute(unsigned cpu, void *data) {
    (void)cpu;
    const block *one = data;
    if (counting) {
        count(before_last, last, one);
        if (one->stops) {
            counting = false;
            write_counts();
        }
        n_calls += last->calls && !one->polls;
    } else if (one->starts && starts_to_go != 0) {
        counting = --starts_to_go == 0;
    }
    before_last = last ? last : one;
    last = one;
}

static bool is_executor(const char *name) {
    for (size_t i = 0; i < sizeof(executors) / sizeof(executors[0]); i++) {
        if (executors[i][0] && strcmp(name, executors[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    const struct qemu_plugin_insn *final =
        qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);
    const char *name = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(tb, 0));
    name = name ? name : "";
    block *one = calloc(1, sizeof(block));
    if (!one) {
        end("no memory");
    }
    one->index = n_blocks++;
    one->first = (uint32_t)qemu_plugin_tb_vaddr(tb);
    one->last = (uint32_t)qemu_plugin_insn_vaddr(final);
    one->stops = strcmp(name, "pt_counter_stop") == 0;
    one->polls = strcmp(name, poll) == 0;
    if (strcmp(name, "pt_counter_start") == 0) { // the function may have other blocks
        first_start = first_start ? first_start : one->first;
        one->starts = one->first == first_start;
    }
    uint16_t code;
    memcpy(&code, qemu_plugin_insn_data(final), sizeof(code));
    one->calls = is_executor(name) && (code & 0xff87) == 0x4780; // BLX
    if (output) {
        fprintf(output, "block %" PRIu32 " %" PRIx32 " %" PRIx32 " %s\n", one->index, one->first,
                one->last, name);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, execute, 0, one);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv) {
    (void)info;
    size_t n_executors = 0;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "output=", 7) == 0) {
            output = fopen(argv[i] + 7, "w");
        } else if (strncmp(argv[i], "polls=", 6) == 0) {
            snprintf(poll, sizeof(poll), "%s", argv[i] + 6);
        } else if (strncmp(argv[i], "executor=", 9) == 0 && n_executors < 4) {
            snprintf(executors[n_executors++], sizeof(poll), "%s", argv[i] + 9);
        } else if (strncmp(argv[i], "starts=", 7) == 0) {
            starts_to_go = (uint32_t)strtoul(argv[i] + 7, NULL, 10);
        }
    }
    if (!output || starts_to_go == 0 || !poll[0] || n_executors == 0) {
        fprintf(stderr, "block_counts: output=FILE,starts=N,polls=NAME,executor=NAME\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    return 0;
}
