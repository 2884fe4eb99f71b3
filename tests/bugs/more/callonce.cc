// A routine of call_once that fails at first: what its first tries leave behind comes in the order of who tried. Guarded: yes,
// re-executes under order alone. Fails: exit status 1, "out of order".
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static std::once_flag once;
static std::mutex m;
static std::vector<int> tried, had;

static void build(int me)
{
	std::lock_guard<std::mutex> l(m);
	tried.push_back(me);
	if (tried.size() < 3)
		throw std::runtime_error("not yet");
}

static void use(int me)
{
	int got = me;
	try {
		std::call_once(once, build, me);
	} catch (std::exception &) {
		got = -1 - me;
	}
	std::lock_guard<std::mutex> l(m);
	had.push_back(got);
}

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 5; i++)
		threads.emplace_back(use, i);
	for (auto &t : threads)
		t.join();
	for (int i : tried)
		std::printf("%d ", i);
	for (int i : had)
		std::printf(" %d", i);
	if (tried[0] < tried[1] && tried[1] < tried[2])
		return std::puts("") < 0;
	std::puts(" out of order");
	return 1;
}
