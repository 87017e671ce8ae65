/* rte_meter over a table of meters, for benchmarks that compare ours with it. */
#include <errno.h>
#include <string.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_meter.h>
#include <rte_prefetch.h>
#include "peers.h"

static void *table(size_t head, size_t size, uint32_t n) {
  void *t = n == 0 || (n & (n - 1)) != 0 ? NULL : rte_zmalloc(NULL, head + size * n, RTE_CACHE_LINE_SIZE);
  if (t == NULL) rte_errno = n == 0 || (n & (n - 1)) != 0 ? EINVAL : ENOMEM;
  return t;
}
static void *done(void *t, int r) {
  if (r == 0) return t;
  rte_free(t);
  rte_errno = -r;
  return NULL;
}

/* Octets a second, and octets. */
struct sl_srtcm *sl_srtcm(uint32_t n, uint64_t cir, uint64_t cbs, uint64_t ebs) {
  struct rte_meter_srtcm_params p = {.cir = cir, .cbs = cbs, .ebs = ebs};
  struct sl_srtcm *t = table(sizeof *t, sizeof t->meters[0], n);
  if (t == NULL) return NULL;
  t->mask = n - 1;
  int r = rte_meter_srtcm_profile_config(&t->profile, &p);
  for (uint32_t i = 0; i < n && r == 0; i++) r = rte_meter_srtcm_config(&t->meters[i], &t->profile);
  return done(t, r);
}
struct sl_trtcm *sl_trtcm(uint32_t n, uint64_t cir, uint64_t pir, uint64_t cbs, uint64_t pbs) {
  struct rte_meter_trtcm_params p = {.cir = cir, .pir = pir, .cbs = cbs, .pbs = pbs};
  struct sl_trtcm *t = table(sizeof *t, sizeof t->meters[0], n);
  if (t == NULL) return NULL;
  t->mask = n - 1;
  int r = rte_meter_trtcm_profile_config(&t->profile, &p);
  for (uint32_t i = 0; i < n && r == 0; i++) r = rte_meter_trtcm_config(&t->meters[i], &t->profile);
  return done(t, r);
}

/* Packets come with colours, which theirs replace. Lines are asked for into the second cache at once, and a few packets ahead
 * into the first: so it is fastest. */
#define COLOUR(kind)                                                                                                        \
  void sl_##kind##_colour(struct sl_##kind *t, const uint32_t *which, const uint32_t *octets, uint8_t *colours, unsigned n, \
                          uint64_t now) {                                                                                   \
    enum { AHEAD = 8 };                                                                                                     \
    for (unsigned i = 0; i < n; i++) rte_prefetch1(&t->meters[which[i] & t->mask]);                                         \
    for (unsigned i = 0; i < n && i < AHEAD; i++) rte_prefetch0(&t->meters[which[i] & t->mask]);                            \
    for (unsigned i = 0; i < n; i++) {                                                                                      \
      if (i + AHEAD < n) rte_prefetch0(&t->meters[which[i + AHEAD] & t->mask]);                                             \
      colours[i] = rte_meter_##kind##_color_aware_check(&t->meters[which[i] & t->mask], &t->profile, now, octets[i],        \
                                                        (enum rte_color)colours[i]);                                        \
    }                                                                                                                       \
  }
COLOUR(srtcm)
COLOUR(trtcm)
void sl_meters_free(void *t) { rte_free(t); }
