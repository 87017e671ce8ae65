/* EAL's start, and functions of EAL's that take their time, done otherwise: each is in an archive member of its own there, or in
 * libc, which is never pulled in once the name is known from here. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_memory.h>

extern void sl_log(const char *text, size_t n); /* in Rust */
static ssize_t log_sink(void *cookie, const char *text, size_t n) { (void)cookie; sl_log(text, n); return n; }

/* net_af_xdp's libraries print to stderr unless told otherwise; what they call debugging is left out. */
static int print_log(const char *format, va_list args) {
  char text[512];
  int n = vsnprintf(text, sizeof text, format, args);
  if (n > 0) sl_log(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
  return n;
}
static int bpf_log(enum libbpf_print_level level, const char *format, va_list args) {
  return level == LIBBPF_DEBUG ? 0 : print_log(format, args);
}
static int xdp_log(enum libxdp_print_level level, const char *format, va_list args) {
  return level == LIBXDP_DEBUG ? 0 : print_log(format, args);
}

/* Ordinary pages come by the 2 MiB then, where the system has them to give: buffers are there sooner, and addresses of
 * packets stay in the TLB. */
static int huge_where_possible(const struct rte_memseg_list *list, void *arg) {
  (void)arg;
  if (!list->external) madvise(list->base_va, list->len, MADV_HUGEPAGE);
  return 0;
}

/* EAL binds the calling thread to its main lcore's CPU; the caller's other work must not be bound, so that is undone. */
extern void sl_mend_af_xdp(void);
int sl_eal(int argc, char **argv) {
  sl_mend_af_xdp();
  cookie_io_functions_t io = {.write = log_sink};
  FILE *log = fopencookie(NULL, "w", io);
  if (log == NULL) return -ENOMEM;
  setvbuf(log, NULL, _IOLBF, 1024);
  rte_openlog_stream(log);
  libbpf_set_print(bpf_log);
  libxdp_set_print(xdp_log);
  cpu_set_t set;
  int bound = sched_getaffinity(0, sizeof set, &set);
  int r = rte_eal_init(argc, argv);
  if (r < 0) return rte_errno > 0 ? -rte_errno : r;
  if (bound == 0) sched_setaffinity(0, sizeof set, &set);
  if (!rte_eal_has_hugepages()) rte_memseg_list_walk(huge_where_possible, NULL);
  return 0;
}

/* Without huge pages EAL takes its memory from a file that others could share, where the kernel gives pages one by one. Where
 * there is no such file, EAL takes memory of the process's own. */
int memfd_create(const char *name, unsigned flags) {
  if (strcmp(name, "nohuge") == 0) { errno = ENOSYS; return -1; }
  return syscall(SYS_memfd_create, name, flags);
}

/* EAL asks for each of RTE_MAX_LCORE processors on which of RTE_MAX_NUMA_NODES nodes it is, 4,096 questions, and only then
 * whether it exists, which it asks again and again. */
int eal_cpu_detected(unsigned cpu);
int eal_cpu_detected(unsigned cpu) {
  static enum { UNKNOWN, THERE, ABSENT } known[RTE_MAX_LCORE];
  char path[64];
  if (cpu >= RTE_MAX_LCORE) return 0;
  if (known[cpu] == UNKNOWN) {
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/core_id", cpu);
    known[cpu] = access(path, F_OK) == 0 ? THERE : ABSENT;
  }
  return known[cpu] == THERE;
}
unsigned eal_cpu_core_id(unsigned cpu);
unsigned eal_cpu_core_id(unsigned cpu) {
  char path[64];
  unsigned id = 0;
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/core_id", cpu);
  FILE *file = eal_cpu_detected(cpu) ? fopen(path, "re") : NULL;
  if (file == NULL) return 0;
  if (fscanf(file, "%u", &id) != 1) id = 0;
  fclose(file);
  return id;
}
unsigned eal_cpu_socket_id(unsigned cpu);
unsigned eal_cpu_socket_id(unsigned cpu) {
  char path[64];
  for (unsigned node = 0; eal_cpu_detected(cpu) && node < RTE_MAX_NUMA_NODES; node++) {
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpu%u", node, cpu);
    if (access(path, F_OK) == 0) return node;
  }
  return 0;
}

/* EAL measures the TSC by sleeping 100 ms where neither CPUID leaf 0x15 nor an MSR tells its rate. 2 ms against the raw clock
 * are exact to well below a part in a thousand. */
uint64_t get_tsc_freq_arch(void);
uint64_t get_tsc_freq_arch(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_max(0, NULL) >= 0x15) {
    __cpuid_count(0x15, 0, a, b, c, d);
    if (a != 0 && b != 0 && c != 0) return (uint64_t)c * b / a;
  }
  struct timespec from, to;
  uint64_t ns;
  clock_gettime(CLOCK_MONOTONIC_RAW, &from);
  uint64_t start = rte_rdtsc();
  do {
    clock_gettime(CLOCK_MONOTONIC_RAW, &to);
    ns = (to.tv_sec - from.tv_sec) * 1000000000ull + to.tv_nsec - from.tv_nsec;
  } while (ns < 2000000);
  uint64_t hz = (rte_rdtsc() - start) * 1000000000ull / ns;
  return (hz + 500000) / 1000000 * 1000000;
}
