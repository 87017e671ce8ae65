/* Pools of packet buffers, and where their free buffers are: in chunks of up to 256, which are a stack. DPDK's own handlers do not do.
 * The others of a ring wait for a thread that was preempted while it put buffers there, and `lf_stack` has to walk from buffer to
 * buffer. Here a thread that stands still anywhere holds no more than the buffers of one chunk. */
#define ALLOW_EXPERIMENTAL_API /* rte_atomic128_cmp_exchange */
#include <string.h>
#include <rte_atomic.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

#define OTHERS 255
#define FEW 32

/* It lies in its first buffer's data. */
struct chunk {
  struct chunk *next;
  uint64_t n;
  void *others[OTHERS];
};
_Static_assert(sizeof(struct chunk) <= RTE_MBUF_DEFAULT_BUF_SIZE, "a chunk in a buffer");
static struct chunk *chunk_of(void *buffer) { return (struct chunk *)((char *)buffer + sizeof(struct rte_mbuf)); }
static void *buffer_of(struct chunk *c) { return (char *)c - sizeof(struct rte_mbuf); }

/* What changed on its way away and back again has another turn. */
union top {
  struct { struct chunk *chunk; uint64_t turn; };
  rte_int128_t both;
};
struct stack {
  union top top;
  uint32_t count;
} __rte_cache_aligned;

/* Both halves may be of different times: then the exchange fails, and gets what is there. */
static union top look(const struct stack *s) {
  return (union top){{.chunk = __atomic_load_n(&s->top.chunk, __ATOMIC_RELAXED), .turn = __atomic_load_n(&s->top.turn, __ATOMIC_RELAXED)}};
}
static void push(struct stack *s, struct chunk *c) {
  union top old = look(s), new = {{.chunk = c}};
  do {
    __atomic_store_n(&c->next, old.chunk, __ATOMIC_RELAXED);
    new.turn = old.turn + 1;
  } while (!rte_atomic128_cmp_exchange(&s->top.both, &old.both, &new.both, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}
/* Memory of buffers is never given back. What is read of a chunk that somebody else has taken since is nonsense, and so is not used: the
 * turn is another one. */
static struct chunk *pop(struct stack *s) {
  union top old = look(s), new;
  do {
    if (old.chunk == NULL) return NULL;
    new.chunk = __atomic_load_n(&old.chunk->next, __ATOMIC_RELAXED);
    new.turn = old.turn + 1;
  } while (!rte_atomic128_cmp_exchange(&s->top.both, &old.both, &new.both, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
  return old.chunk;
}

static void give(struct stack *s, void *const *buffers, unsigned n) {
  while (n > 0) {
    unsigned some = n <= OTHERS ? n : OTHERS + 1;
    /* A few join those on top, so that there are not many small chunks. */
    struct chunk *c = some <= FEW ? pop(s) : NULL;
    if (c != NULL && c->n + some <= OTHERS) {
      memcpy(&c->others[c->n], buffers, some * sizeof *buffers);
      c->n += some;
    } else {
      if (c != NULL) push(s, c);
      c = chunk_of(buffers[0]);
      c->n = some - 1;
      memcpy(c->others, &buffers[1], c->n * sizeof *buffers);
    }
    push(s, c);
    buffers += some;
    n -= some;
  }
}
static int enqueue(struct rte_mempool *p, void *const *buffers, unsigned n) {
  struct stack *s = p->pool_data;
  give(s, buffers, n);
  __atomic_add_fetch(&s->count, n, __ATOMIC_RELAXED);
  return 0;
}
static int dequeue(struct rte_mempool *p, void **buffers, unsigned n) {
  struct stack *s = p->pool_data;
  for (unsigned had = 0; had < n;) {
    struct chunk *c = pop(s);
    if (c == NULL) {
      give(s, buffers, had);
      return -ENOBUFS;
    }
    unsigned some = n - had;
    if (c->n < some) {
      memcpy(&buffers[had], c->others, c->n * sizeof *buffers);
      had += c->n;
      buffers[had++] = buffer_of(c);
    } else {
      c->n -= some;
      memcpy(&buffers[had], &c->others[c->n], some * sizeof *buffers);
      had = n;
      push(s, c);
    }
  }
  __atomic_sub_fetch(&s->count, n, __ATOMIC_RELAXED);
  return 0;
}
static unsigned count(const struct rte_mempool *p) {
  return __atomic_load_n(&((struct stack *)p->pool_data)->count, __ATOMIC_RELAXED);
}
static int make(struct rte_mempool *p) {
  p->pool_data = rte_zmalloc(NULL, sizeof(struct stack), RTE_CACHE_LINE_SIZE);
  return p->pool_data == NULL ? -ENOMEM : 0;
}
static void destroy(struct rte_mempool *p) { rte_free(p->pool_data); }
static const struct rte_mempool_ops chunks = {
  .name = "chunks", .alloc = make, .free = destroy, .enqueue = enqueue, .dequeue = dequeue, .get_count = count,
};
RTE_MEMPOOL_REGISTER_OPS(chunks)

/* As rte_pktmbuf_pool_create, but one buffer right after the other. That one starts each on a page of its own where pages
 * are small: 4 KiB apiece, all headers in the same set of the first cache, and behind the end of what net_af_xdp registers
 * with the kernel (buffers times their size), which never gives back a buffer that it does not know. Where devices know
 * physical addresses alone, huge pages are not one piece of memory: there DPDK's own way is right, and pages are large; without
 * the flag, so that no buffer crosses a page and each knows its physical address. */
struct rte_mempool *sl_pool(const char *name, unsigned n, unsigned cache) {
  struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE};
  unsigned size = sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE;
  int physical = rte_eal_has_hugepages() && rte_eal_iova_mode() == RTE_IOVA_PA;
  struct rte_mempool *p = rte_mempool_create_empty(name, n, size, cache, sizeof private, SOCKET_ID_ANY,
                                                   physical ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG);
  if (!p) return NULL;
  size_t octets = (size_t)n * (p->header_size + p->elt_size + p->trailer_size);
  const struct rte_memzone *zone = NULL;
  int r = rte_mempool_set_ops_byname(p, chunks.name, NULL);
  if (r == 0) rte_pktmbuf_pool_init(p, &private);
  if (r == 0 && physical) {
    r = rte_mempool_populate_default(p);
  } else if (r == 0) {
    zone = rte_memzone_reserve_aligned(name, octets, SOCKET_ID_ANY, RTE_MEMZONE_IOVA_CONTIG, RTE_MEMPOOL_ALIGN);
    r = zone ? rte_mempool_populate_iova(p, zone->addr, zone->iova, octets, NULL, NULL) : -rte_errno;
  }
  if (r != (int)n) {
    rte_mempool_free(p);
    rte_memzone_free(zone);
    rte_errno = r < 0 ? -r : ENOMEM;
    return NULL;
  }
  rte_mempool_obj_iter(p, rte_pktmbuf_init, NULL);
  return p;
}
