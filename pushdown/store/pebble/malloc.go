//go:build cgo && linux

package pebble

// Pebble allocates its cache of blocks and its memtables with C's malloc. The GNU C
// library has up to eight arenas for each processor, among which it divides the threads,
// and memory that was freed in one arena is not used by the others: where scans and
// compactions take turns, a cache of 64 MiB grows to 150 MiB. One arena for eight
// processors is enough, because allocations are few: each is a block that has just been
// read and decompressed.
//
// The number is set before Go's runtime starts threads, because a thread keeps its
// arena. That is before main, so the code here itself respects the settings that the
// library reads from the environment, MALLOC_ARENA_MAX and glibc.malloc.arena_max. Other
// C libraries have no such arenas. Source: mallopt(3).

// #define _GNU_SOURCE
// #include <malloc.h>
// #include <sched.h>
// #include <stdlib.h>
// #include <string.h>
//
// #if defined(__GLIBC__)
// __attribute__((constructor)) static void few_arenas(void) {
//	const char *tunables = getenv("GLIBC_TUNABLES");
//	if (getenv("MALLOC_ARENA_MAX") || (tunables && strstr(tunables, "glibc.malloc.arena_max")))
//		return;
//	cpu_set_t set;
//	int processors = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
//	mallopt(M_ARENA_MAX, processors < 16 ? 1 : processors / 8);
// }
// #endif
import "C"
