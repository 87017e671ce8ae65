/* DPDK's own tables, for benchmarks that compare ours with them. */
#include <errno.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_meter.h>
#include <rte_prefetch.h>

struct rte_hash *sl_hash(const char *name, uint32_t entries) {
  struct rte_hash_parameters p = {.name = name, .entries = entries, .key_len = 8, .hash_func = rte_hash_crc, .socket_id = SOCKET_ID_ANY};
  return rte_hash_create(&p);
}
int sl_hash_add(struct rte_hash *h, const uint64_t *key) { return rte_hash_add_key(h, key); }
int sl_hash_find(const struct rte_hash *h, const uint64_t *keys, unsigned n, int32_t *places) {
  const void *at[RTE_HASH_LOOKUP_BULK_MAX];
  if (n > RTE_HASH_LOOKUP_BULK_MAX) return -EINVAL;
  for (unsigned i = 0; i < n; i++) at[i] = &keys[i];
  return rte_hash_lookup_bulk(h, at, n, places);
}
void sl_hash_free(struct rte_hash *h) { rte_hash_free(h); }

struct rte_fib *sl_fib(const char *name, uint32_t routes, uint32_t blocks) {
  struct rte_fib_conf c = {.type = RTE_FIB_DIR24_8, .max_routes = (int)routes,
                           .dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = blocks}};
  return rte_fib_create(name, SOCKET_ID_ANY, &c);
}
int sl_fib_add(struct rte_fib *f, uint32_t net, uint8_t length, uint64_t to) { return rte_fib_add(f, net, length, to); }
int sl_fib_find(struct rte_fib *f, uint32_t *addresses, uint64_t *to, unsigned n) { return rte_fib_lookup_bulk(f, addresses, to, (int)n); }
void sl_fib_free(struct rte_fib *f) { rte_fib_free(f); }

struct rte_fib6 *sl_fib6(const char *name, uint32_t routes, uint32_t blocks) {
  struct rte_fib6_conf c = {.type = RTE_FIB6_TRIE, .max_routes = (int)routes,
                            .trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = blocks}};
  return rte_fib6_create(name, SOCKET_ID_ANY, &c);
}
int sl_fib6_add(struct rte_fib6 *f, const uint8_t *net, uint8_t length, uint64_t to) { return rte_fib6_add(f, net, length, to); }
int sl_fib6_find(struct rte_fib6 *f, uint8_t (*addresses)[16], uint64_t *to, unsigned n) { return rte_fib6_lookup_bulk(f, addresses, to, (int)n); }
void sl_fib6_free(struct rte_fib6 *f) { rte_fib6_free(f); }

/* Meters of one profile, each in a cache line. */
struct sl_meters {
  struct rte_meter_trtcm_profile profile;
  uint32_t mask;
  struct { struct rte_meter_trtcm of; } __rte_cache_aligned line[];
};
struct sl_meters *sl_meters(uint32_t bits, uint64_t cir, uint64_t cbs, uint64_t pir, uint64_t pbs) {
  struct rte_meter_trtcm_params p = {.cir = cir, .cbs = cbs, .pir = pir, .pbs = pbs};
  struct sl_meters *m = rte_zmalloc("meters", sizeof *m + (sizeof m->line[0] << bits), RTE_CACHE_LINE_SIZE);
  if (!m) return NULL;
  m->mask = (1u << bits) - 1;
  int wrong = rte_meter_trtcm_profile_config(&m->profile, &p);
  for (uint32_t i = 0; !wrong && i <= m->mask; i++) wrong = rte_meter_trtcm_config(&m->line[i].of, &m->profile);
  if (!wrong) return m;
  rte_free(m);
  rte_errno = -wrong;
  return NULL;
}
void sl_meters_colour(struct sl_meters *m, const uint32_t *places, const uint32_t *octets, uint8_t *colours, unsigned n, uint64_t now) {
  enum { AHEAD = 8 };
  for (unsigned i = 0; i < n; i++) rte_prefetch1(&m->line[places[i] & m->mask]);
  for (unsigned i = 0; i < n && i < AHEAD; i++) rte_prefetch0(&m->line[places[i] & m->mask]);
  for (unsigned i = 0; i < n; i++) {
    if (i + AHEAD < n) rte_prefetch0(&m->line[places[i + AHEAD] & m->mask]);
    struct rte_meter_trtcm *meter = &m->line[places[i] & m->mask].of;
    colours[i] = (uint8_t)rte_meter_trtcm_color_aware_check(meter, &m->profile, now, octets[i], (enum rte_color)colours[i]);
  }
}
void sl_meters_free(struct sl_meters *m) { rte_free(m); }
