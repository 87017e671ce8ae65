/* rte_hash, rte_fib and rte_fib6, for benchmarks that compare ours with them. */
#include <errno.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_lcore.h>

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
