//go:build cgo && linux

package pebble

// Pebble keeps its cache of blocks and its memtables in memory of C's malloc. The
// GNU C library gives threads arenas of their own, eight for each processor, and
// what was freed in one serves no other: where scans and compactions take turns, a
// cache of 64 MiB comes to hold 150. One arena for eight processors is enough, for
// what is asked for are whole blocks, of which each has just been read and
// decompressed.
//
// It is set before Go's runtime starts threads, because a thread keeps the arena
// that it has; that is before any main, so that the library's own settings in the
// environment, MALLOC_ARENA_MAX and glibc.malloc.arena_max, are heeded here. Other
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
