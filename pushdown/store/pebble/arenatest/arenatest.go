//go:build cgo && linux

// Package arenatest counts the arenas of C's malloc for a test, which cannot call C
// itself.
package arenatest

// #include <malloc.h>
// #include <stdio.h>
// #include <stdlib.h>
// #include <string.h>
//
// static void use(void) { free(malloc(1 << 16)); }
//
// static int arenas(void) {
//	int n = 1;
// #if defined(__GLIBC__)
//	char *text = NULL;
//	size_t size = 0;
//	FILE *f = open_memstream(&text, &size);
//	if (!f || malloc_info(0, f) || fclose(f))
//		return -1;
//	n = 0;
//	for (char *at = text; (at = strstr(at, "<heap nr=")); at++)
//		n++;
//	free(text);
// #endif
//	return n;
// }
import "C"

import (
	"runtime"
	"sync"
)

// Arenas returns how many arenas there are once so many threads, all at the same time,
// have allocated memory. It is negative if the C library cannot tell.
func Arenas(threads int) int {
	var used, done sync.WaitGroup
	used.Add(threads)
	end := make(chan struct{})
	for range threads {
		done.Go(func() {
			// No thread may serve twice.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			C.use()
			used.Done()
			<-end
		})
	}

	used.Wait()
	n := int(C.arenas())
	close(end)
	done.Wait()
	return n
}
