// cflags: -std=c++17
// The C++ library's random device, by each means that it has here: what it says is never said, but what follows from it.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <unistd.h>

int main()
{
	unsigned sum = 0;
	for (const char *how : {"default", "rdseed", "rdrand", "rdrnd", "getentropy", "arc4random", "/dev/urandom", "nowhere"}) {
		try {
			std::random_device d(how);
			std::uniform_int_distribution<unsigned> u(0, 1000000);
			std::mt19937 g(d());
			for (int i = 0; i < 10; i++)
				sum = sum * 31 + u(g) + d();
			printf("%s\n", how);
		} catch (const std::exception &e) {
			printf("%s: %s\n", how, e.what());
		}
	}
	// What a program does hangs on it: the names of files, say.
	if (getenv("PROPHET_TRACE")) {
		char name[40];
		snprintf(name, sizeof name, "no such %u", sum);
		access(name, F_OK);
	}
	return 0;
}
