/* rte_acl over 5-tuples, for benchmarks that compare ours with it. A key is an IP header without options or extension headers,
 * with the first four octets behind it, as DPDK's example l3fwd has it: the search reads packets in place. */
#define ALLOW_EXPERIMENTAL_API /* rte_vect_set_max_simd_bitwidth */
#include <errno.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <rte_acl.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_vect.h>

/* The picture that Rust has of a rule, in host order; of an IPv4 address the first word alone counts. */
struct sl_acl_rule {
  uint32_t source[4], destination[4];
  uint16_t source_ports[2], destination_ports[2];
  uint8_t source_length, destination_length, protocol, any_protocol;
};
enum { V4_FIELDS = 5, V6_FIELDS = 11 };
RTE_ACL_RULE_DEF(v6_rule, V6_FIELDS);

/* The search reads the protocol, then four octets at a time: both ports are one input. */
#define FIELD(t, s, f, i, o) {.type = RTE_ACL_FIELD_TYPE_##t, .size = s, .field_index = f, .input_index = i, .offset = o}
static const struct rte_acl_config v4 = {.num_categories = 1, .num_fields = V4_FIELDS, .defs = {
  FIELD(BITMASK, 1, 0, 0, 9), FIELD(MASK, 4, 1, 1, 12), FIELD(MASK, 4, 2, 2, 16), FIELD(RANGE, 2, 3, 3, 20), FIELD(RANGE, 2, 4, 3, 22),
}};
static const struct rte_acl_config v6 = {.num_categories = 1, .num_fields = V6_FIELDS, .defs = {
  FIELD(BITMASK, 1, 0, 0, 6),
  FIELD(MASK, 4, 1, 1, 8), FIELD(MASK, 4, 2, 2, 12), FIELD(MASK, 4, 3, 3, 16), FIELD(MASK, 4, 4, 4, 20),
  FIELD(MASK, 4, 5, 5, 24), FIELD(MASK, 4, 6, 6, 28), FIELD(MASK, 4, 7, 7, 32), FIELD(MASK, 4, 8, 8, 36),
  FIELD(RANGE, 2, 9, 9, 40), FIELD(RANGE, 2, 10, 9, 42),
}};

/* Lets DPDK use vectors of 512 bits in what is made from now on; it uses 256 otherwise. */
int sl_wide_vectors(void) { return rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512); }

static struct rte_acl_field *address(struct rte_acl_field *f, const uint32_t *words, unsigned n, unsigned length) {
  for (unsigned i = 0; i < n; i++, f++) {
    unsigned before = 32 * i;
    f->value.u32 = words[i];
    f->mask_range.u32 = length <= before ? 0 : length - before > 32 ? 32 : length - before;
  }
  return f;
}
static struct rte_acl_field *ports(struct rte_acl_field *f, const uint16_t range[2]) {
  f->value.u16 = range[0];
  f->mask_range.u16 = range[1];
  return f + 1;
}
/* Rule number `i`: the earlier one goes first, and is found by its number and one. */
static int add(struct rte_acl_ctx *ctx, const struct sl_acl_rule *r, unsigned i, unsigned words) {
  if (r->source_length > 32 * words || r->destination_length > 32 * words) return -EINVAL;
  struct v6_rule rule = {.data = {.category_mask = 1, .priority = RTE_ACL_MAX_PRIORITY - (int)i, .userdata = i + 1}};
  rule.field[0].value.u8 = r->protocol;
  rule.field[0].mask_range.u8 = r->any_protocol ? 0 : 0xff;
  struct rte_acl_field *f = address(&rule.field[1], r->source, words, r->source_length);
  f = address(f, r->destination, words, r->destination_length);
  ports(ports(f, r->source_ports), r->destination_ports);
  return rte_acl_add_rules(ctx, (const struct rte_acl_rule *)&rule, 1);
}

struct rte_acl_ctx *sl_acl(const char *name, const struct sl_acl_rule *rules, unsigned n, int is_v6) {
  struct rte_acl_param p = {.name = name, .socket_id = SOCKET_ID_ANY, .max_rule_num = n,
                            .rule_size = RTE_ACL_RULE_SZ(is_v6 ? V6_FIELDS : V4_FIELDS)};
  /* DPDK would hand out the one that there is, which has its owner. */
  if (rte_acl_find_existing(name) != NULL) { rte_errno = EEXIST; return NULL; }
  struct rte_acl_ctx *ctx = rte_acl_create(&p);
  if (ctx == NULL) return NULL;
  int r = 0;
  for (unsigned i = 0; i < n && r == 0; i++) r = add(ctx, &rules[i], i, is_v6 ? 4 : 1);
  if (r == 0) r = rte_acl_build(ctx, is_v6 ? &v6 : &v4);
  if (r == 0) return ctx;
  rte_acl_free(ctx);
  rte_errno = -r;
  return NULL;
}
int sl_acl_choose(struct rte_acl_ctx *ctx, int form) { return rte_acl_set_ctx_classify(ctx, (enum rte_acl_classify_alg)form); }
int sl_acl_find(const struct rte_acl_ctx *ctx, const uint8_t *keys, unsigned size, uint32_t *found, unsigned n) {
  const uint8_t *at[64];
  if (n > 64) return -EINVAL;
  for (unsigned i = 0; i < n; i++) at[i] = keys + (size_t)size * i;
  return rte_acl_classify(ctx, at, found, n, 1);
}
/* The same with several lists, as many as a power of two up to 64: `which` names each key's. A search for each key. */
int sl_acl_find_each(struct rte_acl_ctx *const *lists, unsigned count, const uint8_t *which, const uint8_t *keys, unsigned size,
                     uint32_t *found, unsigned n) {
  for (unsigned i = 0; i < n; i++, keys += size) {
    int r = rte_acl_classify(lists[which[i] & (count - 1)], &keys, &found[i], 1, 1);
    if (r != 0) return r;
  }
  return 0;
}
/* A search for all keys of each list. */
int sl_acl_find_parts(struct rte_acl_ctx *const *lists, unsigned count, const uint8_t *which, const uint8_t *keys, unsigned size,
                      uint32_t *found, unsigned n) {
  const uint8_t *at[64];
  uint32_t results[64];
  uint8_t first[64] = {0}, order[64];
  if (n > 64 || count > 64) return -EINVAL;
  for (unsigned i = 0; i < n; i++) first[which[i] & (count - 1)]++;
  for (unsigned l = 1; l < count; l++) first[l] += first[l - 1];
  for (unsigned i = n; i-- > 0;) order[--first[which[i] & (count - 1)]] = (uint8_t)i;
  for (unsigned i = 0; i < n; i++) at[i] = keys + (size_t)size * order[i];
  for (unsigned l = 0; l < count; l++) {
    unsigned begin = first[l], end = l + 1 < count ? first[l + 1] : n;
    if (end == begin) continue;
    int r = rte_acl_classify(lists[l], at + begin, results + begin, end - begin, 1);
    if (r != 0) return r;
  }
  for (unsigned i = 0; i < n; i++) found[order[i]] = results[i];
  return 0;
}
void sl_acl_free(struct rte_acl_ctx *ctx) { rte_acl_free(ctx); }
