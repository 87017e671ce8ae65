/* rte_sched: a port with one subport, and a pipe for each subscriber, for benchmarks that compare ours with it. */
#include <errno.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_sched.h>

enum { OCTETS = 128, CACHE = 256, FRAMES = 64, PERIOD = 40, BUCKET = 1000000 };

/* Frames whose buffers have room for headers alone. */
struct rte_mempool *sl_small_pool(const char *name, unsigned n) {
  return rte_pktmbuf_pool_create(name, n, CACHE, 0, RTE_PKTMBUF_HEADROOM + OCTETS, SOCKET_ID_ANY);
}

/* Rates are octets a second. All packets are of the best-effort class, which has four queues with weights. */
struct rte_sched_port *sl_sched(uint32_t pipes, uint64_t rate, uint64_t pipe_rate, const uint8_t *weights) {
  enum { BE = RTE_SCHED_TRAFFIC_CLASS_BE };
  struct rte_sched_subport_profile_params whole = {.tb_rate = rate, .tb_size = BUCKET, .tc_period = PERIOD};
  struct rte_sched_pipe_params pipe = {.tb_rate = pipe_rate, .tb_size = BUCKET, .tc_period = PERIOD, .tc_ov_weight = 1};
  for (unsigned tc = 0; tc <= BE; tc++) whole.tc_rate[tc] = rate;
  pipe.tc_rate[BE] = pipe_rate;
  for (unsigned queue = 0; queue < RTE_SCHED_BE_QUEUES_PER_PIPE; queue++) pipe.wrr_weights[queue] = weights[queue];
  struct rte_sched_subport_params subport = {
    .n_pipes_per_subport_enabled = pipes, .qsize = {[BE] = FRAMES}, .pipe_profiles = &pipe, .n_pipe_profiles = 1, .n_max_pipe_profiles = 1,
  };
  struct rte_sched_port_params params = {
    .name = "sched", .rate = rate, .mtu = RTE_ETHER_MTU + 22, .frame_overhead = RTE_SCHED_FRAME_OVERHEAD_DEFAULT, .n_subports_per_port = 1,
    .subport_profiles = &whole, .n_subport_profiles = 1, .n_max_subport_profiles = 1, .n_pipes_per_subport = pipes,
  };
  struct rte_sched_port *port = rte_sched_port_config(&params);
  int r = port == NULL ? -EINVAL : rte_sched_subport_config(port, 0, &subport, 0);
  for (uint32_t at = 0; at < pipes && r == 0; at++) r = rte_sched_pipe_config(port, 0, at, 0);
  if (r == 0) return port;
  rte_sched_port_free(port);
  rte_errno = -r;
  return NULL;
}
void sl_sched_address(struct rte_sched_port *port, struct rte_mbuf *m, uint32_t pipe, uint32_t queue) {
  rte_sched_port_pkt_write(port, m, 0, pipe, RTE_SCHED_TRAFFIC_CLASS_BE, queue, RTE_COLOR_GREEN);
}
int sl_sched_enqueue(struct rte_sched_port *port, struct rte_mbuf **m, uint32_t n) { return rte_sched_port_enqueue(port, m, n); }
int sl_sched_dequeue(struct rte_sched_port *port, struct rte_mbuf **m, uint32_t n) { return rte_sched_port_dequeue(port, m, n); }
void sl_sched_free(struct rte_sched_port *port) { rte_sched_port_free(port); }
