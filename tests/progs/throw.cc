// Exceptions through intercepted functions that call back: pthread_once, qsort is libc's own, std::call_once, a thread's end.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int tries;
static void init()
{
	if (++tries < 4)
		throw std::runtime_error("not yet");
}

struct Guarded {
	Guarded()
	{
		if (++count < 3)
			throw count;
	}
	static int count;
};
int Guarded::count;

static void guarded()
{
	static Guarded g;
}

int main()
{
	for (int i = 0; i < 6; i++) {
		try {
			pthread_once(&once, init);
			std::printf("once done after %d\n", tries);
		} catch (const std::exception &e) {
			std::printf("caught %s\n", e.what());
		}
	}
	for (int i = 0; i < 4; i++) {
		try {
			guarded();
			std::printf("guard passed\n");
		} catch (int n) {
			std::printf("guard threw %d\n", n);
		}
	}
	std::once_flag flag;
	int n = 0;
	for (int i = 0; i < 4; i++) {
		try {
			std::call_once(flag, [&] {
				if (++n < 2)
					throw 1;
			});
			std::printf("call_once %d\n", n);
		} catch (int) {
			std::printf("call_once threw\n");
		}
	}
	std::mutex m;
	std::condition_variable cv;
	bool go = false;
	std::vector<std::thread> all;
	int sum = 0;
	for (int i = 0; i < 8; i++)
		all.emplace_back([&, i] {
			std::unique_lock<std::mutex> l(m);
			cv.wait(l, [&] { return go; });
			try {
				std::lock_guard<std::mutex> other(*new std::mutex);
				throw i;
			} catch (int k) {
				sum += k;
			}
		});
	{
		std::lock_guard<std::mutex> l(m);
		go = true;
	}
	cv.notify_all();
	for (auto &t : all)
		t.join();
	std::printf("sum %d\n", sum);
	try {
		std::unique_lock<std::mutex> l(m);
		l.lock();
	} catch (const std::system_error &e) {
		std::printf("%s\n", e.code().message().c_str());
	}
	return 0;
}
