// bench_directory [RECORDS]: what a record of the directory in memory costs: nanoseconds of processor time to
// publish it, to publish it again, to find it and to expire it, as a ratio to an insertion into a std::map of
// the same keys, and bytes.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>

#include "dht/memory_directory.h"
#include "dht/node_record.h"

namespace {

using namespace fedge;
using namespace fedge::dht;

double nanoseconds_each(std::uint32_t count, const std::function<void(std::uint32_t)>& work) {
  const std::clock_t start = std::clock();
  for (std::uint32_t i = 0; i < count; ++i) work(i);
  return 1e9 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / count;
}

void print(const char* what, double time, double yardstick) {
  std::printf("| %-22s | %7.0f | %5.2f |\n", what, time, time / yardstick);
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1'000'000);
  std::vector<Key> keys;
  for (std::uint32_t i = 0; i < count; ++i) keys.push_back(node_key(ClientId(i)));
  const auto value = encode_node_record({.latency_ms = 12, .labels = {}});
  if (!value || count == 0) return 1;
  std::size_t failures = 0;
  double map_time = 0;
  {
    std::map<Key, std::vector<std::byte>> map;
    map_time = nanoseconds_each(count, [&](std::uint32_t i) { map.emplace(keys[i], *value); });
  }
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  MemoryDirectory directory;
  const auto publish = [&](std::uint32_t i, std::uint64_t sequence) {
    const Record record{keys[i], 1, sequence, Time(seconds(30.0 * static_cast<double>(sequence) + i % 97)),
                        *value};
    if (!directory.publish(record)) ++failures;
  };
  std::printf("| %-22s | %7s | %5s |\n| --- | --- | --- |\n", "a record", "ns", "ratio");
  print("insertion into a map", map_time, map_time);
  print("publish", nanoseconds_each(count, [&](std::uint32_t i) { publish(i, 1); }), map_time);
  const std::size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
  print("publish again", nanoseconds_each(count, [&](std::uint32_t i) { publish(i, 2); }), map_time);
  print("find",
        nanoseconds_each(count,
                         [&](std::uint32_t i) {
                           directory.lookup(keys[i], [&](const auto& found) {
                             if (!found) ++failures;
                           });
                         }),
        map_time);
  print("expire",
        nanoseconds_each(count,
                         [&](std::uint32_t i) {
                           if (i % (count / 100 + 1) == 0) directory.expire(Time(seconds(i)));
                           if (i + 1 == count) directory.expire(Time(seconds(1e6)));
                         }),
        map_time);
  std::printf("\n%.0f bytes a record besides its value of %zu; %zu failures, %zu left\n",
              static_cast<double>(after - before) / count - static_cast<double>(value->size()), value->size(),
              failures, directory.records());
  return failures == 0 && directory.records() == 0 ? 0 : 1;
}
