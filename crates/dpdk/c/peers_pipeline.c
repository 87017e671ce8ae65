/* A gateway's packet path out of DPDK's libraries, in the stages of Intel's vBNG reference pipeline, for benchmarks that compare
 * ours with it. It runs to completion: each stage takes the whole burst. A packet that a stage drops is freed, and the others
 * keep their order. */
#include <string.h>
#include <rte_acl.h>
#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_fib.h>
#include <rte_hash.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_meter.h>
#include <rte_prefetch.h>
#include "peers.h"

/* A core waits for some twenty lines at a time: lines are asked for into the second cache a stage ahead, and so many packets
 * ahead into the first. */
enum { BURST = 64, SOON = 8, TAGGED = 22, ACCESS = 30, CORE = 14 };
/* IPv4 in PPPoE under two tags. */
struct access_header {
  uint8_t destination[6], source[6];
  rte_be16_t outer_tpid, outer_tag, inner_tpid, inner_tag, ethertype;
  uint8_t version_type, code;
  rte_be16_t session, length, protocol;
} __rte_packed;
/* In one cache line. */
struct encapsulation { struct access_header header; } __rte_aligned(32);
_Static_assert(sizeof(struct access_header) == ACCESS && offsetof(struct access_header, version_type) == TAGGED, "access_header");

/* The tables belong to Rust. */
struct filter {
  const struct rte_acl_ctx *acl;
  const uint8_t *permits; /* by the number that the list finds; 0: no rule */
};
struct sl_uplink {
  struct filter filter;
  const struct rte_hash *sessions; /* by key(); a session's place is its number */
  struct sl_trtcm *meters;         /* of each session */
  struct rte_fib *routes;          /* to neighbours */
  const struct rte_ether_addr *neighbours;
  uint32_t neighbours_mask;
  struct rte_ether_addr gateway;
};
struct sl_downlink {
  struct filter filter;
  struct rte_fib *routes; /* to sessions */
  const struct encapsulation *encapsulations; /* of each session */
  uint32_t sessions_mask;
};
/* Assured Forwarding 1, by colour (RFC 2597 section 6): the type of service. */
static const uint8_t marks[] = {[RTE_COLOR_GREEN] = 10 << 2, [RTE_COLOR_YELLOW] = 12 << 2, [RTE_COLOR_RED] = 14 << 2};

static inline struct rte_ipv4_hdr *ip_of(struct rte_mbuf *m, unsigned at) { return rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, at); }
static inline uint64_t key(const struct access_header *h) {
  return (uint64_t)(rte_be_to_cpu_16(h->outer_tag) & 0xfff) << 32 | (rte_be_to_cpu_16(h->inner_tag) & 0xfff) << 16 | rte_be_to_cpu_16(h->session);
}
/* One hop fewer and another type of service; the checksum follows (RFC 1624 equation 3). It is reckoned of octets: to read back
 * a word of which one octet was just written would stall. */
static inline void forward(struct rte_ipv4_hdr *ip, uint8_t service) {
  uint32_t before = (uint32_t)ip->type_of_service << 8, after = (uint32_t)service << 8;
  uint32_t sum = (uint16_t)~ip->hdr_checksum + (0xffff - before) + after + (0xffff - 1);
  ip->type_of_service = service;
  ip->time_to_live--;
  sum = (sum & 0xffff) + (sum >> 16);
  ip->hdr_checksum = ~((sum & 0xffff) + (sum >> 16));
}
/* Packets that a stage kept, closed up. The frames of the rest are freed. */
static inline unsigned keep(struct rte_mbuf **m, const uint8_t *kept, unsigned n) {
  struct rte_mbuf *gone[BURST];
  unsigned some = 0, lost = 0;
  for (unsigned i = 0; i < n; i++) {
    if (likely(kept[i])) m[some++] = m[i];
    else gone[lost++] = m[i];
  }
  if (unlikely(lost != 0)) rte_pktmbuf_free_bulk(gone, lost);
  return some;
}
/* IPv4 without options, with hops left and ports (RFC 1812 section 5.3.1), that lies at `at`. */
static inline int is_good(const struct rte_mbuf *m, const struct rte_ipv4_hdr *ip, unsigned at) {
  return m->data_len >= at + sizeof *ip + 4 && ip->version_ihl == 0x45 && ip->time_to_live > 1;
}
static unsigned permitted(const struct filter *f, struct rte_mbuf **m, unsigned at, unsigned n) {
  const uint8_t *data[BURST];
  uint32_t found[BURST];
  uint8_t kept[BURST];
  for (unsigned i = 0; i < n; i++) data[i] = (const uint8_t *)ip_of(m[i], at);
  rte_acl_classify(f->acl, data, found, n, 1);
  for (unsigned i = 0; i < n; i++) kept[i] = f->permits[found[i]];
  return keep(m, kept, n);
}

static unsigned parse_up(struct rte_mbuf **m, unsigned n) {
  uint8_t kept[BURST];
  for (unsigned i = 0; i < n; i++) {
    const struct access_header *h = rte_pktmbuf_mtod(m[i], const struct access_header *);
    kept[i] = h->outer_tpid == RTE_BE16(RTE_ETHER_TYPE_QINQ) && h->inner_tpid == RTE_BE16(RTE_ETHER_TYPE_VLAN) &&
              h->ethertype == RTE_BE16(RTE_ETHER_TYPE_PPPOE_SESSION) && h->version_type == 0x11 && h->protocol == RTE_BE16(0x0021) &&
              is_good(m[i], ip_of(m[i], ACCESS), ACCESS);
  }
  return keep(m, kept, n);
}
/* Finds the packets' sessions, and starts fetching their meters. */
static unsigned classify(const struct sl_uplink *p, struct rte_mbuf **m, uint32_t *which, unsigned n) {
  uint64_t keys[BURST];
  const void *at[BURST];
  int32_t places[BURST];
  uint8_t kept[BURST];
  unsigned some = 0;
  for (unsigned i = 0; i < n; i++) {
    keys[i] = key(rte_pktmbuf_mtod(m[i], const struct access_header *));
    at[i] = &keys[i];
  }
  if (n != 0) rte_hash_lookup_bulk(p->sessions, at, n, places);
  for (unsigned i = 0; i < n; i++) {
    kept[i] = places[i] >= 0;
    if (!kept[i]) continue;
    which[some] = (uint32_t)places[i] & p->meters->mask;
    rte_prefetch1(&p->meters->meters[which[some++]]);
  }
  return keep(m, kept, n);
}
/* Meters the packets, drops the red ones and marks the others by colour. */
static unsigned police(const struct sl_uplink *p, struct rte_mbuf **m, const uint32_t *which, uint32_t *to, unsigned n) {
  uint64_t now = rte_rdtsc();
  uint8_t kept[BURST];
  unsigned some = 0;
  for (unsigned i = 0; i < SOON && i < n; i++) rte_prefetch0(&p->meters->meters[which[i]]);
  for (unsigned i = 0; i < n; i++) {
    if (i + SOON < n) rte_prefetch0(&p->meters->meters[which[i + SOON]]);
    struct rte_ipv4_hdr *ip = ip_of(m[i], ACCESS);
    enum rte_color colour = rte_meter_trtcm_color_blind_check(&p->meters->meters[which[i]], &p->meters->profile, now,
                                                              rte_be_to_cpu_16(ip->total_length));
    kept[i] = colour != RTE_COLOR_RED;
    if (!kept[i]) continue;
    forward(ip, marks[colour]);
    to[some++] = rte_be_to_cpu_32(ip->dst_addr);
  }
  return keep(m, kept, n);
}

/* Upstream: access list, session, meter, mark, access headers off, route, Ethernet header. Number of packets left. */
unsigned sl_uplink_run(const struct sl_uplink *p, struct rte_mbuf **m, unsigned n) {
  uint32_t which[BURST], to[BURST];
  uint64_t hops[BURST];
  n = parse_up(m, n);
  n = permitted(&p->filter, m, ACCESS, n);
  n = classify(p, m, which, n);
  n = police(p, m, which, to, n);
  rte_fib_lookup_bulk(p->routes, to, hops, (int)n);
  for (unsigned i = 0; i < n; i++) {
    struct rte_ether_hdr *h = (struct rte_ether_hdr *)rte_pktmbuf_adj(m[i], ACCESS - CORE);
    h->dst_addr = p->neighbours[hops[i] & p->neighbours_mask];
    h->src_addr = p->gateway;
    h->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
  }
  return n;
}

/* Downstream: access list as a check of the reverse path, route to the session, its access headers. Number of packets left. */
unsigned sl_downlink_run(const struct sl_downlink *p, struct rte_mbuf **m, unsigned n) {
  uint32_t to[BURST];
  uint64_t hops[BURST];
  uint8_t kept[BURST];
  for (unsigned i = 0; i < n; i++) {
    const struct rte_ether_hdr *h = rte_pktmbuf_mtod(m[i], const struct rte_ether_hdr *);
    kept[i] = h->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && is_good(m[i], ip_of(m[i], CORE), CORE);
  }
  n = keep(m, kept, n);
  n = permitted(&p->filter, m, CORE, n);
  for (unsigned i = 0; i < n; i++) to[i] = rte_be_to_cpu_32(ip_of(m[i], CORE)->dst_addr);
  rte_fib_lookup_bulk(p->routes, to, hops, (int)n);
  for (unsigned i = 0; i < n; i++) rte_prefetch1(&p->encapsulations[hops[i] &= p->sessions_mask]);
  for (unsigned i = 0; i < n; i++) {
    if (i + SOON < n) rte_prefetch0(&p->encapsulations[hops[i + SOON]]);
    struct rte_ipv4_hdr *ip = ip_of(m[i], CORE);
    forward(ip, ip->type_of_service);
    rte_be16_t length = ip->total_length;
    struct access_header *h = (struct access_header *)rte_pktmbuf_prepend(m[i], ACCESS - CORE);
    kept[i] = h != NULL;
    if (h == NULL) continue;
    *h = p->encapsulations[hops[i]].header;
    h->length = rte_cpu_to_be_16(rte_be_to_cpu_16(length) + 2);
  }
  return keep(m, kept, n);
}
