// cflags: -std=c++17
// Function-local statics of C++: one initialises, others wait; an initialiser that throws; call_once that throws; and the
// same in a C++ program's threads.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<int> made, tried;

struct slow {
	int v;
	slow() : v(7)
	{
		usleep(20000);
		made++;
	}
};

static int use()
{
	static slow s;
	return s.v;
}

struct touchy {
	touchy()
	{
		if (tried++ < 2)
			throw std::runtime_error("not yet");
	}
};

static bool touch()
{
	static touchy t;
	return true;
}

int main()
{
	std::vector<std::thread> th;
	std::atomic<int> sum{0}, caught{0}, good{0};
	for (int i = 0; i < 16; i++)
		th.emplace_back([&] {
			sum += use();
			try {
				good += touch();
			} catch (std::exception &) {
				caught++;
			}
		});
	for (auto &t : th)
		t.join();
	std::printf("made %d sum %d caught %d good %d\n", made.load(), sum.load(), caught.load(), good.load());
	std::once_flag once;
	int n = 0, thrown = 0;
	for (int i = 0; i < 4; i++)
		try {
			std::call_once(once, [&] {
				if (++n < 3)
					throw 1;
			});
		} catch (int) {
			thrown++;
		}
	std::printf("runs %d thrown %d\n", n, thrown);
}
