package main

// #include <signal.h>
// static unsigned long long ignored;
// /* Before Go takes the signals. */
// __attribute__((constructor)) static void look(void)
// {
//	struct sigaction a;
//	int n;
//	for (n = 1; n <= 64; n++)
//		if (sigaction(n, 0, &a) == 0 && a.sa_handler == SIG_IGN)
//			ignored |= 1ull << (n - 1);
// }
// static unsigned long long began(void) { return ignored; }
import "C"

import "prophet/runtime/ignored"

func init() { ignored.Began(uint64(C.began())) }
