// Measures the cost of a join with many enrolled clients. Redeems tokens in a book of ENROLLED clients, as
// the coordinator's writing thread does. Meanwhile another thread looks keys up, as the network thread does.
//   bench_joins [ENROLLED] [JOINS]
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bench/daemons/process.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/enrolment.h"
#include "server/store/enrolment_file.h"

namespace {

using namespace fedge;
using namespace fedge::bench;
using Clock = std::chrono::steady_clock;

PublicKey numbered(std::uint32_t number) {
  PublicKey key;
  const Digest digest = sha256(std::to_string(number));
  std::copy(digest.begin(), digest.end(), key.bytes.begin());
  return key;
}

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void print(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  std::printf("%-40s p50 %.3f ms, p99 %.3f ms, most %.3f ms\n", what, at(0.5), at(0.99), at(1));
}

}  // namespace

int main(int argc, char** argv) {
  const auto enrolled = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 100'000);
  const auto joins = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 500);
  std::string directory = (std::filesystem::current_path() / "bench-joins-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) give_up("no temporary directory");
  server::EnrolmentBook book;
  for (std::uint32_t i = 0; i < enrolled; ++i)
    book.clients.push_back({.client = ClientId(i), .key = numbered(i)});
  if (const auto made = server::create_enrolment_book(directory, book); !made) give_up(made.error().message);
  server::Enrolment writer(directory);
  server::Enrolment reader(directory);
  const auto token = writer.create_tokens({.uses = joins, .now = 0, .lifetime = std::chrono::hours(1)});
  if (!token) give_up(token.error().message);
  Clock::time_point begin = Clock::now();
  if (!reader.authenticate(numbered(0))) give_up("the book cannot be read");
  std::printf("%u enrolled, read in %.0f ms\n", enrolled, milliseconds_since(begin));

  std::vector<double> joined;
  std::vector<double> looked_up;
  std::atomic<bool> over = false;
  std::thread network([&] {
    while (!over) {
      const auto asked = Clock::now();
      if (!reader.authenticate(numbered(7))) give_up("a client is not known");
      looked_up.push_back(milliseconds_since(asked));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (std::uint32_t i = 0; i < joins; ++i) {
    begin = Clock::now();
    if (const auto done =
            writer.redeem({token->front().secret, numbered(enrolled + i), 1, "192.0.2.1:1", "192.0.2.1"});
        !done)
      give_up(done.error().message);
    joined.push_back(milliseconds_since(begin));
  }
  over = true;
  network.join();
  print("a join", joined);
  print("a look-up while others join", looked_up);
  std::filesystem::remove_all(directory);
}
