/* What net_af_xdp leaves undone when a port is closed and opened again, mended between the driver and libxdp: functions of
 * libxdp's names that come before the library's own and call them.
 *
 * 1. The driver forgets the buffers that it lent to the kernel (2,048 and what waits to be received or was not sent yet).
 *    Here they go back to their pool.
 * 2. The driver never deletes a socket's memory (it waits for the last of its users, and counts one too many), and with
 *    that never closes the socket, which keeps the interface's queue. Here the memory goes with its only socket.
 * 3. The kernel lets go of a closed socket's queue a moment later (xp_release_deferred), until when it is busy.
 * 4. libxdp's program takes long to put on an interface. Here it is our own (xdp_program.c), unless the device arguments name
 *    another.
 *
 * A frame that the kernel is just receiving while the socket is closed keeps its buffer: one for each processor at most. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <net/if.h>
#include <xdp/xsk.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include "xdp_program.h"

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* The most sockets: ports, and queues of each. */
#define SOCKETS (RTE_MAX_ETHPORTS * 16)

/* A socket and its rings, as the driver made them. */
struct lent {
  struct xsk_umem *umem;
  struct xsk_socket *xsk;
  char *area;
  struct xsk_ring_prod *fill, *tx;
  struct xsk_ring_cons *comp, *rx;
  int at;      /* the interface, and its queue */
  __u32 queue;
  int ifindex; /* with a program of ours, else 0 */
};
static struct lent all[SOCKETS];

static struct lent *of_umem(const struct xsk_umem *umem) {
  for (int i = 0; i < SOCKETS; i++)
    if (all[i].umem == umem) return &all[i];
  return NULL;
}

static void pause_ms(long ms) {
  struct timespec t = {.tv_nsec = ms * 1000000};
  nanosleep(&t, NULL);
}

int xsk_umem__create(struct xsk_umem **umem, void *area, __u64 size, struct xsk_ring_prod *fill, struct xsk_ring_cons *comp,
                     const struct xsk_umem_config *config) {
  int r = REAL(xsk_umem__create)(umem, area, size, fill, comp, config);
  struct lent *l = r == 0 ? of_umem(NULL) : NULL;
  if (l != NULL) *l = (struct lent){.umem = *umem, .area = area, .fill = fill, .comp = comp};
  return r;
}

static int create(struct xsk_socket **xsk, const char *interface, __u32 queue, struct xsk_umem *umem, struct xsk_ring_cons *rx,
                  struct xsk_ring_prod *tx, const struct xsk_socket_config *config) {
  int r = REAL(xsk_socket__create)(xsk, interface, queue, umem, rx, tx, config);
  for (int tries = 0; r == -EBUSY && tries < 200; tries++) {
    pause_ms(1);
    r = REAL(xsk_socket__create)(xsk, interface, queue, umem, rx, tx, config);
  }
  return r;
}

int xsk_socket__create(struct xsk_socket **xsk, const char *interface, __u32 queue, struct xsk_umem *umem, struct xsk_ring_cons *rx,
                       struct xsk_ring_prod *tx, const struct xsk_socket_config *config) {
  struct xsk_socket_config ours = *config;
  int ifindex = ours.libbpf_flags & XSK_LIBBPF_FLAGS__INHIBIT_PROG_LOAD ? 0 : (int)if_nametoindex(interface);
  ours.libbpf_flags |= XSK_LIBBPF_FLAGS__INHIBIT_PROG_LOAD;
  int r = create(xsk, interface, queue, umem, rx, tx, &ours);
  if (r == 0 && ifindex != 0) {
    r = xdp_program_lead_to(ifindex, queue, xsk_socket__fd(*xsk));
    if (r < 0) { REAL(xsk_socket__delete)(*xsk); *xsk = NULL; }
  }
  struct lent *l = r == 0 ? of_umem(umem) : NULL;
  if (l != NULL) { l->xsk = *xsk; l->rx = rx; l->tx = tx; l->ifindex = ifindex; l->at = (int)if_nametoindex(interface); l->queue = queue; }
  return r;
}

/* The socket of a queue of a port, or -1 if it is of another driver: it is readable when something has come. An interface is one
 * port's, whose queues have the interface's in ascending order. */
int sl_socket(uint16_t port, uint16_t queue) {
  struct rte_eth_dev_info info;
  if (rte_eth_dev_info_get(port, &info) < 0 || info.if_index == 0) return -1;
  for (int i = 0; i < SOCKETS; i++) {
    if (all[i].xsk == NULL || all[i].at != (int)info.if_index) continue;
    unsigned before = 0;
    for (int k = 0; k < SOCKETS; k++)
      before += all[k].xsk != NULL && all[k].at == all[i].at && all[k].queue < all[i].queue;
    if (before == queue) return xsk_socket__fd(all[i].xsk);
  }
  return -1;
}

static __u32 at(const __u32 *index) { return __atomic_load_n(index, __ATOMIC_ACQUIRE); }

/* What the kernel copied out of a buffer and sent it tells a moment later. */
static void await_completions(const struct lent *l) {
  for (int ms = 0; ms < 20 && at(l->tx->consumer) != at(l->comp->producer); ms++) pause_ms(1);
}

/* An address is that of the header which a mempool puts in front of each buffer (rte_mempool_calc_obj_size). */
static struct rte_mbuf *buffer(const struct lent *l, __u64 address) {
  size_t header = RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_MEMPOOL_ALIGN);
  return (struct rte_mbuf *)(l->area + xsk_umem__extract_addr(address) + header);
}

/* The lent buffers, each once; their number. The driver polls no more. Of what moves from the fill ring to the receive ring
 * while this looks, the first list has it already. */
static unsigned collect(const struct lent *l, struct rte_mbuf **found) {
  unsigned n = 0;
  for (__u32 i = at(l->tx->consumer), end = at(l->tx->producer); i != end; i++)
    found[n++] = buffer(l, ((struct xdp_desc *)l->tx->ring)[i & l->tx->mask].addr);
  for (__u32 i = at(l->comp->consumer), end = at(l->comp->producer); i != end; i++)
    found[n++] = buffer(l, ((__u64 *)l->comp->ring)[i & l->comp->mask]);
  unsigned filled = n;
  for (__u32 i = at(l->fill->consumer), end = at(l->fill->producer); i != end; i++)
    found[n++] = buffer(l, ((__u64 *)l->fill->ring)[i & l->fill->mask]);
  unsigned received = n;
  for (__u32 i = at(l->rx->consumer), end = at(l->rx->producer); i != end; i++) {
    struct rte_mbuf *m = buffer(l, ((struct xdp_desc *)l->rx->ring)[i & l->rx->mask].addr);
    unsigned k = filled;
    while (k < received && found[k] != m) k++;
    if (k == received) found[n++] = m;
  }
  return n;
}

void xsk_socket__delete(struct xsk_socket *xsk) {
  struct lent *l = NULL;
  for (int i = 0; i < SOCKETS && xsk != NULL; i++)
    if (all[i].xsk == xsk) l = &all[i];
  if (l == NULL) { REAL(xsk_socket__delete)(xsk); return; }
  unsigned most = l->fill->size + l->comp->size + l->rx->size + l->tx->size, n = 0;
  struct rte_mbuf **found = calloc(most, sizeof *found);
  xdp_program_leave(l->ifindex);
  await_completions(l);
  if (found != NULL) n = collect(l, found);
  REAL(xsk_socket__delete)(xsk);
  REAL(xsk_umem__delete)(l->umem);
  *l = (struct lent){0};
  rte_pktmbuf_free_bulk(found, n); /* the kernel writes to none of them any more */
  free(found);
}

/* Of a socket that could not be made. That of another is gone by now. */
int xsk_umem__delete(struct xsk_umem *umem) {
  struct lent *l = umem != NULL ? of_umem(umem) : NULL;
  if (l == NULL) return 0;
  *l = (struct lent){0};
  return REAL(xsk_umem__delete)(umem);
}

/* Named by the shim, so that the linker takes this file before it looks into libxdp. */
void sl_mend_af_xdp(void) {}
