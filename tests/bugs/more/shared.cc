// What was read under a std::shared_mutex is written back under it in another section: an update between is lost. Guarded: yes,
// re-executes under order alone. Fails: exit status 1, "lost".
#include <iostream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::shared_mutex m;
static std::map<std::string, int> stock;

static void sell(int n)
{
	for (int i = 0; i < n; i++) {
		int left;
		{
			std::shared_lock<std::shared_mutex> l(m);
			left = stock["nuts"];
		}
		std::unique_lock<std::shared_mutex> l(m);
		stock["nuts"] = left - 1;
		l.unlock();
		getppid();
	}
}

int main()
{
	stock["nuts"] = 60;
	std::vector<std::thread> all;
	for (int i = 0; i < 3; i++)
		all.emplace_back(sell, 20);
	for (auto &t : all)
		t.join();
	if (stock["nuts"] != 0) {
		std::cout << "lost " << stock["nuts"] << std::endl;
		return 1;
	}
	return 0;
}
