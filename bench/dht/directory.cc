// bench_directory [RECORDS]: the cost of a record. Prints nanoseconds of processor time to make and open it,
// and to keep, replace, find and expire it in the directory in memory. Prints each also as a ratio to an
// insertion into a std::map of the same keys, and the bytes of a record.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>

#include "dht/memory_directory.h"

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
  const auto count = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 100'000);
  if (count == 0) return 1;
  std::vector<Record> first, second;
  std::vector<SecretKey> signers;
  for (std::uint32_t i = 0; i < count; ++i) signers.push_back(SecretKey::generate());
  const auto sign = [&](std::vector<Record>& into, std::uint32_t i, std::uint64_t sequence) {
    const Time ends(seconds(30.0 * static_cast<double>(sequence) + i % 97));
    const auto made = make_record(signers[i], {sequence, ends},
                                  NodeStatus{RunId(1), {.round = 1, .latency_ms = 12.0, .labels = {}}});
    if (made) into.push_back(*made);
  };
  std::size_t failures = 0;
  const double make_time = nanoseconds_each(count, [&](std::uint32_t i) { sign(first, i, 1); });
  for (std::uint32_t i = 0; i < count; ++i) sign(second, i, 2);
  if (first.size() + second.size() != 2 * std::size_t{count}) return 1;
  const double open_time = nanoseconds_each(count, [&](std::uint32_t i) {
    if (!std::holds_alternative<Record>(open_record(first[i].key, first[i].bytes, Time{}))) ++failures;
  });
  double map_time = 0;
  {
    std::map<Key, std::vector<std::byte>> map;
    map_time = nanoseconds_each(count, [&](std::uint32_t i) { map.emplace(first[i].key, first[i].bytes); });
  }
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  MemoryDirectory directory;
  const auto keep = [&](const Record& record) {
    if (!directory.keep(record)) ++failures;
  };
  std::printf("| %-22s | %7s | %5s |\n| --- | --- | --- |\n", "a record", "ns", "ratio");
  print("insertion into a map", map_time, map_time);
  print("make: encode and sign", make_time, map_time);
  print("open: decode and verify", open_time, map_time);
  print("keep", nanoseconds_each(count, [&](std::uint32_t i) { keep(first[i]); }), map_time);
  const std::size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
  print("keep a later one", nanoseconds_each(count, [&](std::uint32_t i) { keep(second[i]); }), map_time);
  const auto find = [&](std::uint32_t i) {
    directory.lookup(first[i].key, [&](const auto& found) {
      if (found->empty()) ++failures;
    });
  };
  print("find", nanoseconds_each(count, find), map_time);
  const auto expire = [&](std::uint32_t i) {
    if (i % (count / 100 + 1) == 0) directory.advance(Time(seconds(i)));
    if (i + 1 == count) directory.advance(Time(seconds(1e6)));
  };
  print("expire", nanoseconds_each(count, expire), map_time);
  std::printf("\n%.0f bytes a record besides its %zu as they travel; %zu failures, %zu left\n",
              static_cast<double>(after - before) / count - static_cast<double>(first[0].bytes.size()),
              first[0].bytes.size(), failures, directory.records());
  return failures == 0 && directory.records() == 0 ? 0 : 1;
}
