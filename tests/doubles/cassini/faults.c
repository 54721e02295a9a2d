/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong, and what is said of commands.
 *   CASSINI_FAULT=NAME[:N]  once, after N of what it could happen to (0)
 *     revoked      the service is revoked when an LNI is allocated
 *     gone         the LNI is taken away: it takes no command and no packet any more
 *     overflow     an event finds its queue full
 *     lost_ack     an acknowledgement is lost
 *     late_ack     an acknowledgement, and all that goes out behind it, waits for 300 ms
 *     lost_data    what a get fetches is lost
 *     error        the target's NIC answers with a PCIe error
 *     dropped      the target's NIC drops it
 *     disabled     the target's NIC disables the portal table entry
 *     target_event the event of the target has an error, though the bytes are there
 *     translation  the initiator's NIC finds its own memory not mapped
 *     bad_command  the NIC refuses a command
 *     no_wait      there are no wait objects (always)
 *     no_get       the target's NIC does not pull a rendezvous itself (always)
 * Counting begins anew when the variable changes.
 */
#include "nic.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

bool fault(const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char last[64];
    static unsigned long passed;
    const char *wanted = getenv("CASSINI_FAULT");
    size_t length = strlen(name);
    if (!wanted || strncmp(wanted, name, length) != 0 || (wanted[length] && wanted[length] != ':'))
        return false;
    if (strncmp(name, "no_", 3) == 0)
        return true;
    pthread_mutex_lock(&lock);
    if (strncmp(last, wanted, sizeof last) != 0) {
        snprintf(last, sizeof last, "%s", wanted);
        passed = 0;
    }
    bool now = passed++ == (wanted[length] ? strtoul(wanted + length + 1, NULL, 10) : 0);
    pthread_mutex_unlock(&lock);
    return now;
}

uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void trace(const char *format, ...)
{
    const char *path = getenv("CASSINI_TRACE");
    char line[1024];
    va_list list;
    if (!path)
        return;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    if (length > 0 &&
        write(file, line, (size_t)length < sizeof line ? (size_t)length : sizeof line))
        line[0] = '\0';
    close(file);
}

/* All fields of a struct that are not 0. */
static void add_fields(char *line, size_t room, const uint8_t *command, const char *type)
{
    static const struct {
        const char *type, *name;
        unsigned field;
    } fields[] = {
#define CONST(name, value)
#define SIZE(type, bytes)
#define FIELD(type, name, byte, bit, width, member) {#type, #name, type##__##name},
#include "fabric/cxi/cassini.def"
#undef FIELD
#undef SIZE
#undef CONST
    };
    size_t used = strlen(line);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].type, type) != 0)
            continue;
        uint64_t value = cassini_get(command, fields[i].field);
        if (value && used < room)
            used += (size_t)snprintf(line + used, room - used, " %s=0x%llx", fields[i].name,
                                     (unsigned long long)value);
    }
}

static const char *type_of(unsigned type, unsigned opcode, unsigned size, bool target)
{
    if (type == WEFT_C_CMD_TYPE_IDC)
        return opcode == WEFT_C_CMD_CSTATE            ? "c_cstate_cmd"
               : opcode == WEFT_C_CMD_SMALL_MESSAGE   ? "c_idc_msg_hdr"
               : opcode == WEFT_C_CMD_FETCHING_ATOMIC ? "c_idc_amo_cmd"
               : opcode == WEFT_C_CMD_ATOMIC && size  ? "c_idc_amo_cmd"
                                                      : "c_idc_put_cmd";
    if (type == WEFT_C_CMD_TYPE_DMA)
        return size == WEFT_C_CMD_SIZE_32B   ? "c_nomatch_dma_cmd"
               : size == WEFT_C_CMD_SIZE_64B ? "c_full_dma_cmd"
                                             : "c_dma_amo_cmd";
    if (type == WEFT_C_CMD_TYPE_CT)
        return "c_ct_cmd";
    return !target                             ? "c_cq_cmd"
           : opcode == WEFT_C_CMD_TGT_SETSTATE ? "c_set_state_cmd"
                                               : "c_target_cmd";
}

void trace_command(const struct cq *cq, const uint8_t *command, const char *how)
{
    char line[900];
    unsigned type = *command & 3, size = *command >> 2 & 3, opcode = *command >> 4;
    bool target = !(cq->flags & WEFT_CXI_CQ_IS_TX);
    if (!getenv("CASSINI_TRACE"))
        return;
    const char *name = type_of(type, opcode, size, target);
    snprintf(line, sizeof line, "%s 0x%02x %u bytes %s", name, *command, 32U << size, how);
    add_fields(line, sizeof line, command, name);
    trace("%s\n", line);
}
