/* What the peers share. */
#ifndef PEERS_H
#define PEERS_H
#include <rte_meter.h>

/* Tables of meters, as many as a power of two, with one profile: indices wrap. */
struct sl_srtcm { struct rte_meter_srtcm_profile profile; uint32_t mask; struct rte_meter_srtcm meters[] __rte_cache_aligned; };
struct sl_trtcm { struct rte_meter_trtcm_profile profile; uint32_t mask; struct rte_meter_trtcm meters[] __rte_cache_aligned; };
#endif
