// A cache under a shared lock: what is not there is looked for as a reader, and put there as a writer without another look.
// Guarded: yes, re-executes under order alone. Fails: exit status 1, "computed twice".
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

static std::shared_mutex m;
static std::map<int, std::string> cache;
static int computed;

static std::string get(int key)
{
	{
		std::shared_lock<std::shared_mutex> l(m);
		auto it = cache.find(key);
		if (it != cache.end())
			return it->second;
	}
	std::unique_lock<std::shared_mutex> l(m);
	computed++;
	return cache[key] = std::to_string(key * key);
}

int main()
{
	std::vector<std::future<size_t>> all;
	for (int i = 0; i < 4; i++)
		all.push_back(std::async(std::launch::async, [] {
			size_t n = 0;
			for (int k = 0; k < 20; k++)
				n += get(k).size();
			return n;
		}));
	size_t n = 0;
	for (auto &f : all)
		n += f.get();
	if (computed != 20) {
		std::printf("computed twice: %d, %zu\n", computed, n);
		return 1;
	}
	return 0;
}
