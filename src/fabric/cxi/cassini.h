/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of libcxi and of the Cassini NIC, as far as it is needed, in our own words: each
 * thing has the name of the public headers behind weft_ or WEFT_. Nothing of those headers is here,
 * so that this builds everywhere; tests/house/cassini_test.py compares every size, offset, field
 * and constant with them where they are at hand. What the NIC reads and writes is little-endian,
 * and so are all machines that have one. */
#ifndef WEFT_FABRIC_CASSINI_H
#define WEFT_FABRIC_CASSINI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a Cassini is little-endian");

/* ---- commands, events and words: fields by place ---- */

enum cassini_constant {
#define CONST(name, value) WEFT_##name = (value),
#define SIZE(type, bytes)
#define FIELD(type, field, byte, bit, width, member)
#include "fabric/cxi/cassini.def"
#undef FIELD
#undef SIZE
#undef CONST
    CASSINI_CONSTANTS_END
};

/* c_cmd__opcode and the like: where a field is. */
enum cassini_field {
#define CONST(name, value)
#define SIZE(type, bytes) type##__size = (bytes),
#define FIELD(type, field, byte, bit, width, member)                                               \
    type##__##field = ((byte)*8 + (bit)) << 8 | (width),
#include "fabric/cxi/cassini.def"
#undef FIELD
#undef SIZE
#undef CONST
    CASSINI_FIELDS_END
};

static inline uint64_t cassini_mask(unsigned field)
{
    unsigned width = field & 0xff;
    return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static inline uint64_t cassini_get(const void *from, unsigned field)
{
    uint64_t word;
    unsigned at = field >> 8;
    /* A field in the last bytes of what is shorter than eight: read no further than it goes. */
    size_t length = (at % 64 + (field & 0xff) + 7) / 8;
    word = 0;
    memcpy(&word, (const char *)from + (size_t)(at / 64) * 8, length);
    return word >> at % 64 & cassini_mask(field);
}

static inline void cassini_put(void *to, unsigned field, uint64_t value)
{
    uint64_t word = 0;
    unsigned at = field >> 8;
    size_t length = (at % 64 + (field & 0xff) + 7) / 8;
    memcpy(&word, (char *)to + (size_t)(at / 64) * 8, length);
    word &= ~(cassini_mask(field) << at % 64);
    word |= (value & cassini_mask(field)) << at % 64;
    memcpy((char *)to + (size_t)(at / 64) * 8, &word, length);
}

/* ---- what crosses the library's door ---- */

/* Members whose names end with an underscore are ours: fields that the list above has, or room. */
struct weft_cxil_devinfo {
    uint32_t dev_id;
    uint32_t nid;
    uint32_t pid_bits;
    uint32_t pid_count;
    uint32_t pid_granule;
    uint32_t min_free_shift;
    uint32_t rdzv_get_idx;
    char device_name[14];
    char driver_name[9];
    uint32_t vendor_id;
    uint32_t device_id;
    uint32_t device_rev;
    uint32_t device_proto;
    uint32_t device_platform;
    uint16_t num_ptes;
    uint16_t num_txqs;
    uint16_t num_tgqs;
    uint16_t num_eqs;
    uint16_t num_cts;
    uint16_t num_acs;
    uint16_t num_tles;
    uint16_t num_les;
    uint16_t pci_domain;
    uint8_t pci_bus;
    uint8_t pci_device;
    uint8_t pci_function;
    uint64_t link_mtu;
    uint64_t link_speed;
    uint8_t link_state;
    int32_t uc_nic;
    uint32_t pct_eq;
    uint32_t cassini_version;
    char fru_description[16];
    bool is_vf;
    uint32_t system_type_identifier;
};

struct weft_cxil_dev {
    struct weft_cxil_devinfo info;
};

struct weft_cxil_device_list {
    uint32_t count;
    struct weft_cxil_devinfo info[];
};

struct weft_cxil_lni {
    uint32_t id;
};

struct weft_cxil_pte {
    uint32_t ptn;
};

struct weft_cxil_domain {
    uint32_t vni;
    uint32_t pid;
};

struct weft_cxi_cp {
    uint32_t vni;
    uint32_t tc;
    uint32_t tc_type;
    uint32_t lcid;
};

struct weft_cxi_md {
    uint64_t iova;
    uint64_t va;
    uint64_t len;
    uint8_t lac;
    int32_t page_shift;
    int32_t huge_shift;
    uint32_t id;
};

struct weft_cxi_md_hints {
    int32_t page_shift;
    int32_t huge_shift;
    int32_t ptg_mode;
    bool ptg_mode_valid;
    int32_t dmabuf_fd;
    uint64_t dmabuf_offset;
    bool dmabuf_valid;
};

struct weft_cxi_cq_alloc_opts {
    uint32_t count;
    uint32_t policy;
    uint32_t stat_cnt_pool;
    uint32_t flags;
    uint32_t lcid;
    uint32_t lpe_cdt_thresh_id;
};

struct weft_cxi_eq_attr {
    void *queue;
    uint64_t queue_len;
    uint64_t flags;
    uint32_t status_thresh_base;
    uint32_t status_thresh_delta;
    uint32_t status_thresh_count;
    uint32_t ec_delay;
    uint32_t cpu_affinity;
    uint32_t reserved_slots;
};

struct weft_cxi_pt_alloc_opts {
    uint64_t bits_;
};

struct weft_cxi_svc_desc {
    uint8_t bits_;
    uint8_t num_vld_vnis;
    uint16_t vnis[4];
    bool tcs[5];
    uint32_t members[4];
    uint16_t limits[16];
    uint32_t svc_id;
};

/* Software writes into these three: they lie inside private structs of the library, and are never
 * copied. */
struct weft_cxi_cq {
    uint32_t size;
    uint64_t *wp_addr;
    uint8_t *ll_64;
    uint8_t *ll_128a;
    uint8_t *ll_128u;
    uint8_t *cmds32;
    uint64_t rp32;
    uint32_t idx;
    uint32_t size32;
    uint64_t wp32;
    uint64_t hw_wp32;
};

struct weft_cxi_eq {
    uint32_t byte_size;
    uint64_t sw_state;
    uint64_t *sw_state_addr;
    uint64_t last_ts_sec;
    uint64_t last_ts_ns;
    uint32_t rd_offset;
    uint32_t prev_rd_offset;
    uint32_t eqn;
    void *context;
    uint8_t *events;
};

struct weft_cxi_ct {
    uint64_t *doorbell;
    uint32_t ctn;
    void *wb;
};

struct weft_cxil_pte_map;
struct weft_cxil_wait_obj;

/* CXIL(NAME, ARGUMENTS): a call that returns 0 or -errno. */
#define CASSINI_CALLS                                                                              \
    CXIL(cxil_open_device, (uint32_t id, struct weft_cxil_dev * *dev))                             \
    CXIL(cxil_get_svc,                                                                             \
         (struct weft_cxil_dev * dev, unsigned svc_id, struct weft_cxi_svc_desc *desc))            \
    CXIL(cxil_alloc_lni,                                                                           \
         (struct weft_cxil_dev * dev, struct weft_cxil_lni * *lni, unsigned svc_id))               \
    CXIL(cxil_destroy_lni, (struct weft_cxil_lni * lni))                                           \
    CXIL(cxil_alloc_domain, (struct weft_cxil_lni * lni, unsigned vni, unsigned pid,               \
                             struct weft_cxil_domain **domain))                                    \
    CXIL(cxil_destroy_domain, (struct weft_cxil_domain * domain))                                  \
    CXIL(cxil_destroy_cp, (struct weft_cxi_cp * cp))                                               \
    CXIL(cxil_map, (struct weft_cxil_lni * lni, void *va, size_t len, uint32_t flags,              \
                    struct weft_cxi_md_hints *hints, struct weft_cxi_md **md))                     \
    CXIL(cxil_unmap, (struct weft_cxi_md * md))                                                    \
    CXIL(cxil_alloc_evtq, (struct weft_cxil_lni * lni, const struct weft_cxi_md *md,               \
                           const struct weft_cxi_eq_attr *attr, struct weft_cxil_wait_obj *event,  \
                           struct weft_cxil_wait_obj *status, struct weft_cxi_eq **eq))            \
    CXIL(cxil_destroy_evtq, (struct weft_cxi_eq * eq))                                             \
    CXIL(cxil_alloc_cmdq, (struct weft_cxil_lni * lni, struct weft_cxi_eq * eq,                    \
                           const struct weft_cxi_cq_alloc_opts *opts, struct weft_cxi_cq **cq))    \
    CXIL(cxil_destroy_cmdq, (struct weft_cxi_cq * cq))                                             \
    CXIL(cxil_alloc_ct, (struct weft_cxil_lni * lni, void *wb, struct weft_cxi_ct **ct))           \
    CXIL(cxil_destroy_ct, (struct weft_cxi_ct * ct))                                               \
    CXIL(cxil_alloc_pte, (struct weft_cxil_lni * lni, struct weft_cxi_eq * eq,                     \
                          struct weft_cxi_pt_alloc_opts * opts, struct weft_cxil_pte * *pte))      \
    CXIL(cxil_destroy_pte, (struct weft_cxil_pte * pte))                                           \
    CXIL(cxil_map_pte, (struct weft_cxil_pte * pte, struct weft_cxil_domain * domain,              \
                        unsigned pid_offset, bool is_multicast, struct weft_cxil_pte_map **map))   \
    CXIL(cxil_unmap_pte, (struct weft_cxil_pte_map * map))

/* Not in every release of the library; of the first two there is one at least. */
#define CASSINI_CALLS_MAYBE                                                                        \
    CXIL(cxil_alloc_cp, (struct weft_cxil_lni * lni, unsigned vni, unsigned tc, unsigned tc_type,  \
                         struct weft_cxi_cp **cp))                                                 \
    CXIL(cxil_alloc_trig_cp, (struct weft_cxil_lni * lni, unsigned vni, unsigned tc,               \
                              unsigned tc_type, unsigned cp_type, struct weft_cxi_cp **cp))        \
    CXIL(cxil_get_amo_remap_to_pcie_fadd, (struct weft_cxil_dev * dev, int *amo_remap))            \
    CXIL(cxil_get_device_list, (struct weft_cxil_device_list * *list))                             \
    CXIL(cxil_alloc_wait_obj, (struct weft_cxil_lni * lni, struct weft_cxil_wait_obj * *wait))     \
    CXIL(cxil_destroy_wait_obj, (struct weft_cxil_wait_obj * wait))                                \
    CXIL(cxil_get_wait_obj_fd, (struct weft_cxil_wait_obj * wait))

struct cassini_calls {
#define CXIL(name, args) int(*name) args; /* NOLINT(bugprone-macro-parentheses) */
    CASSINI_CALLS
    CASSINI_CALLS_MAYBE
#undef CXIL
    void (*cxil_close_device)(struct weft_cxil_dev *dev);
    /* May be NULL, as above. */
    void (*cxil_free_device_list)(struct weft_cxil_device_list *list);
    void (*cxil_clear_wait_obj)(struct weft_cxil_wait_obj *wait);
};

/* ---- devices ---- */

/* Up to this revision of the first Cassini a target loses atomics on UINT32 that fetch nothing and
 * come as high-rate puts (the vendor's erratum 3236). */
enum { CASSINI_1_DEVICE = 0x0501, CASSINI_1_LAST_LOSING_HRP = 2 };

/* ---- places ---- */

/* In the page of a queue's doorbell, each with a cell of 64 bytes for every one of 16 slots. */
enum {
    CASSINI_LL_64 = 1024,
    CASSINI_LL_128A = 2048,
    CASSINI_LL_128U = 3072,
    CASSINI_LL_CELLS = 16
};

/* In the page of a counter's doorbell. */
enum {
    CASSINI_CT_INC = 0,
    CASSINI_CT_FAIL = 64,
    CASSINI_CT_RESET = 128,
    CASSINI_CT_RESET_FAIL = 192
};

/* A 64-bit word of the NIC, by which software says how far it has read an event queue: 26 bits of
 * blocks of 64 bytes. */
enum { CASSINI_EQ_BLOCK = 64 };

/* A destination: NIC, and in its domain PID the index of a portal table entry, of which the lowest
 * five bits travel beside it. */
static inline uint32_t cassini_dfa(uint32_t nid, uint32_t pid, uint32_t pid_bits, uint32_t index)
{
    return nid << 12 | (((index >> 5 << pid_bits) + pid) & 0xfff);
}

/* Who initiates, as list entries match it. */
static inline uint32_t cassini_match_id(uint32_t nid, uint32_t pid, uint32_t pid_bits)
{
    return (pid & ((1U << pid_bits) - 1)) << (32 - pid_bits) |
           (nid & ((1U << (32 - pid_bits)) - 1));
}

#endif
