// cflags: -lresolv
/* Questions to a name server, which is a thread of our own: the C library sends them by itself. With an argument, the numbers of
 * questions are told, which differ between two runs. */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int server, ids;
static struct __res_state state;

/* The nth question is answered by its number; a name with "none" does not exist. */
static void *serve(void *arg)
{
	static const unsigned char answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0};
	unsigned char b[600], asked = 0;
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	long n;
	while ((n = recvfrom(server, b, 500, 0, (void *)&from, &len)) > 4) {
		int none = memmem(b, n, "none", 4) != 0;
		b[2] |= 0x80;
		b[3] = 0x80 | (none ? 3 : 0);
		b[10] = b[11] = 0;
		if (!none) {
			n = 12;
			while (b[n])
				n += b[n] + 1;
			n += 5;
			b[7] = 1;
			memcpy(b + n, answer, sizeof answer);
			b[n + sizeof answer] = ++asked;
			n += sizeof answer + 1;
		}
		sendto(server, b, n, 0, (void *)&from, len);
	}
	return 0;
}

static void show(const char *what, int r, const unsigned char *b)
{
	printf("%s %d", what, r);
	if (r > 0)
		printf(" last %d id %d\n", b[r - 1], ids ? b[0] << 8 | b[1] : 0);
	else
		printf(" h_errno %d\n", h_errno);
}

int main(int argc, char **argv)
{
	unsigned char b[512], q[512], q2[512];
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, to;
	socklen_t len = sizeof at;
	pthread_t th;
	int n, n2;
	ids = argc > 1;
	server = socket(AF_INET, SOCK_DGRAM, 0);
	bind(server, (void *)&at, sizeof at);
	getsockname(server, (void *)&at, &len);
	res_init();
	res_ninit(&state);
	_res.nscount = state.nscount = 1;
	_res.nsaddr_list[0] = state.nsaddr_list[0] = at;
	_res.options &= ~(RES_DNSRCH | RES_DEFNAMES);
	state.options = _res.options;
	pthread_create(&th, 0, serve, 0);

	show("query", res_query("one.test", C_IN, T_A, b, sizeof b), b);
	show("search", res_search("three.test", C_IN, T_A, b, sizeof b), b);
	show("nquery", res_nquery(&state, "five.test", C_IN, T_A, b, sizeof b), b);
	show("nsearch", res_nsearch(&state, "seven.test", C_IN, T_A, b, sizeof b), b);
	show("querydomain", res_querydomain("nine", "test", C_IN, T_A, b, sizeof b), b);
	show("nquerydomain", res_nquerydomain(&state, "nine", "test", C_IN, T_A, b, sizeof b), b);
	show("nothing", res_query("none.test", C_IN, T_A, b, sizeof b), b);
	show("nothing", res_nquery(&state, "none.test", C_IN, T_A, b, sizeof b), b);
	n = res_mkquery(ns_o_query, "made.test", C_IN, T_A, 0, 0, 0, q, sizeof q);
	n2 = res_mkquery(ns_o_query, "made.test", C_IN, T_A, 0, 0, 0, q2, sizeof q2);
	printf("made %d %d %d\n", n, n == n2, memcmp(q + 2, q2 + 2, n - 2));
	show("send", res_send(q, n, b, sizeof b), b);
	n = res_nmkquery(&state, ns_o_query, "made.test", C_IN, T_A, 0, 0, 0, q, sizeof q);
	n2 = res_nmkquery(&state, ns_o_query, "made.test", C_IN, T_A, 0, 0, 0, q2, sizeof q2);
	printf("made %d %d %d\n", n, n == n2, memcmp(q + 2, q2 + 2, n - 2));
	show("nsend", res_nsend(&state, q, n, b, sizeof b), b);
	sendto(server, "end", 3, 0, (void *)&at, sizeof at);
	pthread_join(th, 0);
	res_nclose(&state);
	printf("asked\n");
	return 0;
}
