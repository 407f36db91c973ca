// Ten thousand clients lose their coordinator at the same time: the real ClientEngine and the real
// ArrivalRate in virtual time, with a different seed for each client.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <vector>

#include "client/client_engine.h"
#include "server/access/arrival_rate.h"

using namespace fedge;
using client::ClientEngine;
using server::ArrivalRate;

namespace {

constexpr std::size_t kClients = 10'000;

struct StormOutcome {
  std::map<std::int64_t, std::size_t>
      arrivals;  // Hellos that reach the coordinator, for each second after the loss
  std::map<std::int64_t, std::size_t> admitted;
  std::vector<double> waited;  // seconds until each client is admitted again, ascending
  std::size_t peak() const {
    std::size_t most = 0;
    for (const auto& [second, count] : arrivals) most = std::max(most, count);
    return most;
  }
  double back_after(double share) const {
    return waited.at(static_cast<std::size_t>(share * static_cast<double>(waited.size() - 1)));
  }
};

struct Storm {
  bool announced = false;  // the coordinator says goodbye
  double away = 0;         // seconds until it is back

  struct Due {
    Time at;
    std::size_t order;  // breaks ties
    std::size_t client;
    std::optional<ClientEngine::Input> input;  // none: the client's connection reaches the coordinator
    bool operator<(const Due& other) const { return std::pair(other.at, other.order) < std::pair(at, order); }
  };
  std::vector<ClientEngine> engines = std::vector<ClientEngine>(kClients);
  std::vector<Rng> rngs;
  std::priority_queue<Due> queue;
  std::size_t orders = 0;
  ArrivalRate rate{};
  StormOutcome outcome;

  void later(Time at, std::size_t client, std::optional<ClientEngine::Input> input) {
    queue.push({at, orders++, client, std::move(input)});
  }
  void feed(Time now, std::size_t client, const ClientEngine::Input& input) {
    std::vector<ClientEngine::Effect> effects;
    engines[client].step(input, {now, rngs[client]}, effects);
    for (const auto& effect : effects)
      if (std::holds_alternative<ClientEngine::Connect>(effect))
        later(now + std::chrono::milliseconds(20), client, std::nullopt);
    if (const auto deadline = engines[client].next_deadline()) later(*deadline, client, Expired{});
  }
  void reach(Time now, std::size_t client) {
    const Error refused{ErrorCode::kUnavailable, "nobody is there"};
    if (now < Time(seconds(away))) return feed(now, client, ClientEngine::Disconnected{refused});
    const auto second = static_cast<std::int64_t>(to_seconds(now.time_since_epoch()));
    ++outcome.arrivals[second];
    if (const auto window = rate.arrive(now)) {
      feed(now, client, ClientEngine::Received{protocol::Goodbye{ErrorCode::kUnavailable, "", *window}});
      return feed(now, client, ClientEngine::Disconnected{refused});
    }
    ++outcome.admitted[second];
    outcome.waited.push_back(to_seconds(now.time_since_epoch()));
    feed(now, client, ClientEngine::Connected{});
  }
  StormOutcome run() {
    const protocol::Welcome welcome{.features = {}, .software = {}, .spread = rate.spread(kClients)};
    for (std::size_t i = 0; i < kClients; ++i) {
      rngs.emplace_back(i);
      std::vector<ClientEngine::Effect> effects;
      engines[i].step(ClientEngine::Start{}, {Time{}, rngs[i]}, effects);
      engines[i].step(ClientEngine::Connected{welcome}, {Time{}, rngs[i]}, effects);
    }
    const Duration window = rate.window(kClients);
    for (std::size_t i = 0; i < kClients; ++i) {
      if (announced)
        feed(Time{}, i, ClientEngine::Received{protocol::Goodbye{ErrorCode::kUnavailable, "", window}});
      feed(Time{}, i, ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
    }
    while (!queue.empty()) {
      const Due due = queue.top();
      queue.pop();
      if (due.input) {
        feed(due.at, due.client, *due.input);
      } else {
        reach(due.at, due.client);
      }
    }
    REQUIRE(outcome.waited.size() == kClients);
    std::ranges::sort(outcome.waited);
    const double mean = static_cast<double>(kClients) / outcome.waited.back();
    MESSAGE("peak " << outcome.peak() << "/s, mean " << mean << "/s; 99 % back after "
                    << outcome.back_after(0.99) << " s, all after " << outcome.waited.back() << " s");
    return std::move(outcome);
  }
};

// In each second, at most the bucket's size plus the rate of a second are admitted.
void check_admitted(const StormOutcome& outcome) {
  for (const auto& [second, count] : outcome.admitted) CHECK(count <= 1000 + 200);
}

}  // namespace

TEST_CASE("storm: 10,000 clients told to come back do so evenly, row 57") {
  // The window is 10,000 / 200 = 50 s: clients return between 50 and 100 s at 200 a second, within five
  // standard deviations of a count of 200.
  const StormOutcome outcome = Storm{.announced = true, .away = 5}.run();
  CHECK(outcome.waited.front() >= 50);
  CHECK(outcome.peak() <= 200 + 5 * 15);
  CHECK(outcome.back_after(0.99) <= 101);
  CHECK(outcome.waited.back() <= 130);  // clients that were deferred once more
  check_admitted(outcome);
}

TEST_CASE(
    "storm: 10,000 clients whose coordinator died for 30 s come back spread by their own back-off, row 57") {
  const StormOutcome outcome = Storm{.announced = false, .away = 30}.run();
  // Clients are told to spread over (10,000 - 1,000) / 200 = 45 s; a client that fails draws again. Repeated
  // draws of n clients from (0, 45 s] arrive at n / 45 e^(t / 45) a second (renewals of a uniform time): 433
  // when the coordinator is back. 200 of them are admitted; the others return a second or two later: 433 +
  // 233, and five standard deviations.
  CHECK(outcome.peak() <= 666 + 5 * 26);
  CHECK(outcome.back_after(0.99) <= 30 + 130);
  CHECK(outcome.waited.back() <= 30 + 200);
  check_admitted(outcome);
}

TEST_CASE("storm: after a cut of all links at once, without a word, no second is crowded, row 57") {
  const StormOutcome outcome = Storm{.announced = false, .away = 0}.run();
  // 10,000 / 45 s in each second, and five standard deviations. The bucket of 1000 just holds the surplus of
  // 22 a second: a few of the last clients are deferred briefly.
  CHECK(outcome.peak() <= 222 + 5 * 15);
  CHECK(outcome.back_after(0.99) <= 45);
  CHECK(outcome.waited.back() <= 45 + 5);
  check_admitted(outcome);
}

TEST_CASE("arrivals: a burst comes in, the next ones are given places behind each other, at the rate") {
  ArrivalRate rate({.per_second = 10, .burst = 3, .shortest = seconds(0.05), .longest = seconds(2)});
  const Time start(seconds(100));
  for (int i = 0; i < 3; ++i) CHECK(!rate.arrive(start));
  CHECK(to_seconds(*rate.arrive(start)) == doctest::Approx(0.1));
  CHECK(to_seconds(*rate.arrive(start)) == doctest::Approx(0.2));
  CHECK(!rate.arrive(start + seconds(0.1)));  // one token is available again, and the queue has advanced by
                                              // one
  CHECK(to_seconds(*rate.arrive(start + seconds(0.1))) == doctest::Approx(0.2));
  for (int i = 0; i < 100; ++i) (void)rate.arrive(start + seconds(0.1));
  CHECK(*rate.arrive(start + seconds(0.1)) == seconds(2));
  CHECK(rate.window(1) == seconds(0.1));
  CHECK(rate.window(0) == seconds(0.05));
  CHECK(rate.window(1'000'000) == seconds(2));
  CHECK(rate.spread(3) == Duration::zero());
  CHECK(rate.spread(4) == seconds(0.1));
  CHECK(rate.spread(1'000'000) == seconds(2));
}
