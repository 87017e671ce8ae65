/* The program that hands an interface's frames to the AF_XDP sockets of its queues, in place of libxdp's: that one is read from
 * a file and put behind a dispatcher, which takes the kernel 20 ms an interface to check and to patch, and stays on the
 * interface when the process is killed. This one goes with the process. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <bpf/libbpf.h>
#include <rte_ethdev.h>
#include "xdp_program.h"

#define NAME "sluice_xsks"
/* A queue beyond that cannot be a port. */
#define QUEUES 1024
/* How long a process that was killed may take to let go of an interface. */
#define TRIES_MS 200

/* What is on an interface, for as long as one of its queues has a socket. */
static struct on { int ifindex, map, link, sockets; } all[RTE_MAX_ETHPORTS];

extern void sl_log(const char *text, size_t n); /* in Rust */

static int bpf(int command, union bpf_attr *attr) {
  int r = syscall(SYS_bpf, command, attr, sizeof *attr);
  return r < 0 ? -errno : r;
}

static int make_map(void) {
  union bpf_attr attr = {.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = QUEUES, .map_name = NAME};
  return bpf(BPF_MAP_CREATE, &attr);
}

/* return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS); */
static int load(int map) {
  const struct bpf_insn code[] = {
    {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1, .off = offsetof(struct xdp_md, rx_queue_index)},
    {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
    {0},
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS},
    {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
    {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_XDP, .insns = (size_t)code, .insn_cnt = sizeof code / sizeof *code,
                         .license = (size_t) "Apache-2.0", .prog_name = NAME, .expected_attach_type = BPF_XDP};
  return bpf(BPF_PROG_LOAD, &attr);
}

static int attach(int program, int ifindex, unsigned mode) {
  union bpf_attr attr = {.link_create = {.prog_fd = program, .target_ifindex = ifindex, .attach_type = BPF_XDP, .flags = mode}};
  return bpf(BPF_LINK_CREATE, &attr);
}

/* The name of the program that is on an interface; its number, or 0 if there is none. */
static unsigned who_is_on(int ifindex, char name[BPF_OBJ_NAME_LEN]) {
  unsigned id = 0;
  struct bpf_prog_info info = {0};
  if (bpf_xdp_query_id(ifindex, 0, &id) != 0 || id == 0) return 0;
  union bpf_attr by_id = {.prog_id = id};
  int program = bpf(BPF_PROG_GET_FD_BY_ID, &by_id);
  if (program < 0) return 0;
  union bpf_attr attr = {.info = {.bpf_fd = program, .info_len = sizeof info, .info = (size_t)&info}};
  int r = bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
  close(program);
  if (r < 0) return 0;
  memcpy(name, info.name, BPF_OBJ_NAME_LEN);
  return id;
}

/* Somebody's program is on the interface. Those that libxdp leaves when its process is killed (an earlier version of ours) are
 * taken off, and our own goes by itself a moment after its process. Whether it is worth trying again. */
static int make_way(int ifindex, int tries) {
  char name[BPF_OBJ_NAME_LEN] = "", device[IF_NAMESIZE] = "", text[160];
  unsigned id = who_is_on(ifindex, name);
  if (id == 0) return tries < TRIES_MS;
  if (strcmp(name, NAME) == 0 && tries < TRIES_MS) return 1;
  int left = strcmp(name, "xsk_def_prog") == 0 || strcmp(name, "xdp_dispatcher") == 0;
  if (left && tries < TRIES_MS && bpf_xdp_detach(ifindex, 0, NULL) == 0) return 1;
  int n = snprintf(text, sizeof text, "the XDP program %s (id %u) is on %s: take it off (ip link set dev %s xdp off)\n", name, id,
                   if_indextoname(ifindex, device), device);
  sl_log(text, n);
  return 0;
}

/* In the driver if that can do it, else in front of the kernel's own stack. */
static int attach_somehow(int program, int ifindex) {
  int link = attach(program, ifindex, 0);
  for (int tries = 0; link == -EBUSY && make_way(ifindex, tries); tries++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    link = attach(program, ifindex, 0);
  }
  return link >= 0 || link == -EBUSY ? link : attach(program, ifindex, XDP_FLAGS_SKB_MODE);
}

static int put_on(struct on *on, int ifindex) {
  int map = make_map();
  if (map < 0) return map;
  int program = load(map);
  int link = program < 0 ? program : attach_somehow(program, ifindex);
  if (program >= 0) close(program); /* the link holds it */
  if (link < 0) { close(map); return link; }
  *on = (struct on){.ifindex = ifindex, .map = map, .link = link};
  return 0;
}

static struct on *find(int ifindex) {
  for (int i = 0; i < RTE_MAX_ETHPORTS; i++)
    if (all[i].ifindex == ifindex) return &all[i];
  return NULL;
}

int xdp_program_lead_to(int ifindex, unsigned queue, int socket) {
  struct on *on = find(ifindex);
  int r = 0;
  if (on == NULL) {
    on = find(0);
    r = on == NULL ? -ENOSPC : put_on(on, ifindex);
    if (r < 0) return r;
  }
  on->sockets++;
  union bpf_attr attr = {.map_fd = on->map, .key = (size_t)&queue, .value = (size_t)&socket};
  r = bpf(BPF_MAP_UPDATE_ELEM, &attr);
  if (r < 0) xdp_program_leave(ifindex);
  return r;
}

void xdp_program_leave(int ifindex) {
  struct on *on = ifindex != 0 ? find(ifindex) : NULL;
  if (on == NULL || --on->sockets > 0) return;
  close(on->link);
  close(on->map);
  *on = (struct on){0};
}
