/* The C side of this crate, but for pool.c, eal.c and af_xdp.c: what DPDK offers only as inline functions, set-up that wants its
 * structures, and asserts that Rust's picture of an mbuf is DPDK's. Functions return a negative errno on failure. */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#define AT(field, offset) _Static_assert(offsetof(struct rte_mbuf, field) == offset, #field)
AT(buf_addr, 0); AT(data_off, 16); AT(refcnt, 18); AT(nb_segs, 20); AT(port, 22); AT(ol_flags, 24);
AT(packet_type, 32); AT(pkt_len, 36); AT(data_len, 40); AT(vlan_tci, 42); AT(hash, 44); AT(vlan_tci_outer, 52);
AT(buf_len, 54); AT(pool, 56);
_Static_assert(RTE_MAX_ETHPORTS == 32, "MAX_PORTS");
_Static_assert(sizeof(struct rte_mbuf) == 128 && RTE_PKTMBUF_HEADROOM == 128, "mbuf");

/* --- the packet path: one call a burst --- */
uint16_t sl_rx(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n) { return rte_eth_rx_burst(port, queue, m, n); }
uint16_t sl_tx(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n) { return rte_eth_tx_burst(port, queue, m, n); }
void sl_free(struct rte_mbuf **m, unsigned n) { rte_pktmbuf_free_bulk(m, n); }
struct rte_mbuf *sl_alloc(struct rte_mempool *p) { return rte_pktmbuf_alloc(p); }
int sl_alloc_bulk(struct rte_mempool *p, struct rte_mbuf **m, unsigned n) { return rte_pktmbuf_alloc_bulk(p, m, n); }
unsigned sl_enqueue(struct rte_ring *r, struct rte_mbuf **m, unsigned n) { return rte_ring_enqueue_burst(r, (void **)m, n, NULL); }
unsigned sl_dequeue(struct rte_ring *r, struct rte_mbuf **m, unsigned n) { return rte_ring_dequeue_burst(r, (void **)m, n, NULL); }
unsigned sl_ring_count(const struct rte_ring *r) { return rte_ring_count(r); }
unsigned sl_pool_free(const struct rte_mempool *p) { return rte_mempool_avail_count(p); }


/* --- outside of it --- */
int sl_chain(struct rte_mbuf *head, struct rte_mbuf *tail) { return rte_pktmbuf_chain(head, tail); }

/* --- set-up --- */
/* A registered thread has an lcore id, hence its own cache in each mempool. */
int sl_register_thread(void) { return rte_lcore_id() != LCORE_ID_ANY ? 0 : rte_thread_register() < 0 ? -rte_errno : 0; }
void sl_unregister_thread(void) { rte_thread_unregister(); }
uint64_t sl_tsc_hz(void) { return rte_get_tsc_hz(); }

struct rte_ring *sl_ring(const char *name, unsigned n) {
  return rte_ring_create(name, n, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}
void sl_ring_free(struct rte_ring *r) { rte_ring_free(r); }
int sl_errno(void) { return rte_errno; }

int sl_find_port(const char *name) {
  uint16_t id;
  return rte_eth_dev_get_port_by_name(name, &id) == 0 ? id : -ENODEV;
}
int sl_probe(const char *devargs) { return rte_dev_probe(devargs); }
int sl_ring_port(const char *name, struct rte_ring **rx, struct rte_ring **tx, unsigned queues) {
  int port = rte_eth_from_rings(name, rx, queues, tx, queues, 0);
  return port < 0 ? -rte_errno : port;
}
static uint16_t least(uint16_t a, uint16_t b) { return a < b ? a : b; }
/* `tags`: octets of VLAN tags that a frame may have beside. Some devices count them, others make room for them by themselves and may
 * refuse more. One whose MTU cannot be set is good if it is large enough. */
int sl_set_mtu(uint16_t port, uint16_t mtu, uint16_t tags) {
  uint16_t had;
  if (tags != 0 && rte_eth_dev_set_mtu(port, mtu + tags) == 0) return 0;
  int r = rte_eth_dev_set_mtu(port, mtu);
  return r == -ENOTSUP && tags != 0 && rte_eth_dev_get_mtu(port, &had) == 0 && had >= mtu ? 0 : r;
}
/* Up to `queues` each way, as many as the device has; their number. `mtu` 0 leaves the driver's. Where the device can, it
 * spreads what it receives by addresses and ports, so that a flow stays in one queue. `rx`: the descriptors wanted, then had. */
int sl_start(uint16_t port, struct rte_mempool *pool, uint16_t mtu, uint16_t tags, uint16_t *rx, uint16_t tx, int promiscuous, uint16_t queues) {
  struct rte_eth_conf conf = {0};
  struct rte_eth_dev_info info;
  int r;
  if ((r = rte_eth_dev_info_get(port, &info)) < 0) return r;
  queues = least(queues, least(info.max_rx_queues, info.max_tx_queues));
  if (queues == 0) return -ENOTSUP;
  conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
  if (queues > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0) conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  if ((r = rte_eth_dev_configure(port, queues, queues, &conf)) < 0) return r;
  if (mtu != 0 && (r = sl_set_mtu(port, mtu, tags)) < 0) return r;
  if ((r = rte_eth_dev_adjust_nb_rx_tx_desc(port, rx, &tx)) < 0) return r;
  for (uint16_t queue = 0; queue < queues; queue++) {
    if ((r = rte_eth_rx_queue_setup(port, queue, *rx, SOCKET_ID_ANY, NULL, pool)) < 0) return r;
    if ((r = rte_eth_tx_queue_setup(port, queue, tx, SOCKET_ID_ANY, NULL)) < 0) return r;
  }
  if ((r = rte_eth_dev_start(port)) < 0) return r;
  /* Neighbour discovery and routing protocols are multicast; drivers that cannot filter pass everything anyhow. */
  rte_eth_allmulticast_enable(port);
  if (promiscuous && (r = rte_eth_promiscuous_enable(port)) < 0 && r != -ENOTSUP) return r;
  return queues;
}
int sl_describe(uint16_t port, uint8_t mac[6], uint16_t *mtu) {
  struct rte_ether_addr a;
  int r;
  if ((r = rte_eth_macaddr_get(port, &a)) < 0) return r;
  memcpy(mac, a.addr_bytes, 6);
  return rte_eth_dev_get_mtu(port, mtu);
}
/* Mb/s of the fastest link that the device can have; 0 if the driver does not say. */
uint32_t sl_fastest(uint16_t port) {
  static const struct { uint32_t bit, mbps; } speeds[] = {
    {RTE_ETH_LINK_SPEED_200G, 200000}, {RTE_ETH_LINK_SPEED_100G, 100000},
    {RTE_ETH_LINK_SPEED_56G, 56000},   {RTE_ETH_LINK_SPEED_50G, 50000},   {RTE_ETH_LINK_SPEED_40G, 40000},
    {RTE_ETH_LINK_SPEED_25G, 25000},   {RTE_ETH_LINK_SPEED_20G, 20000},   {RTE_ETH_LINK_SPEED_10G, 10000},
    {RTE_ETH_LINK_SPEED_5G, 5000},     {RTE_ETH_LINK_SPEED_2_5G, 2500},   {RTE_ETH_LINK_SPEED_1G, 1000},
    {RTE_ETH_LINK_SPEED_100M | RTE_ETH_LINK_SPEED_100M_HD, 100},
  };
  struct rte_eth_dev_info info;
  if (rte_eth_dev_info_get(port, &info) < 0) return 0;
  for (unsigned i = 0; i < sizeof speeds / sizeof *speeds; i++)
    if (info.speed_capa & speeds[i].bit) return speeds[i].mbps;
  return 0;
}
/* The device goes with its port; otherwise it could not be opened again. */
void sl_close(uint16_t port) {
  struct rte_eth_dev_info info;
  struct rte_device *device = rte_eth_dev_info_get(port, &info) == 0 ? info.device : NULL;
  rte_eth_dev_stop(port);
  rte_eth_dev_close(port);
  if (device != NULL) rte_dev_remove(device);
}
/* Whether the link is up, and its speed in Mbit/s, or 0. The drivers over Linux interfaces say that it always is up, so the kernel is asked. */
int sl_link(uint16_t port, uint32_t *mbps) {
  struct rte_eth_dev_info info;
  struct rte_eth_link link;
  struct ifreq interface = {0};
  struct ethtool_cmd speed = {.cmd = ETHTOOL_GSET};
  *mbps = 0;
  if (rte_eth_dev_info_get(port, &info) < 0) return 0;
  if (info.if_index == 0) {
    if (rte_eth_link_get_nowait(port, &link) < 0) return 0;
    if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN) *mbps = link.link_speed;
    return link.link_status == RTE_ETH_LINK_UP;
  }
  int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0) return 0;
  interface.ifr_ifindex = (int)info.if_index;
  int up = ioctl(any, SIOCGIFNAME, &interface) == 0 && ioctl(any, SIOCGIFFLAGS, &interface) == 0 &&
           (interface.ifr_flags & IFF_UP) && (interface.ifr_flags & IFF_RUNNING);
  interface.ifr_data = (char *)&speed;
  if (up && ioctl(any, SIOCETHTOOL, &interface) == 0 && ethtool_cmd_speed(&speed) != (uint32_t)SPEED_UNKNOWN)
    *mbps = ethtool_cmd_speed(&speed);
  close(any);
  return up;
}
/* What the driver itself lost: no room in its queue, damaged frames, no buffers. */
int sl_lost(uint16_t port, uint64_t out[3]) {
  struct rte_eth_stats s;
  int r = rte_eth_stats_get(port, &s);
  if (r < 0) return r;
  out[0] = s.imissed; out[1] = s.ierrors; out[2] = s.rx_nombuf;
  return 0;
}
