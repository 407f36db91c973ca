#include "sim/availability/availability.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/availability/normal.h"
#include "tests/unit/sim/phase_at.h"
#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using sim::Availability;
using sim::AvailabilityKind;
using sim::AvailabilitySpec;
using sim::Phase;

namespace {

std::unique_ptr<Availability> make(const AvailabilitySpec& spec, std::size_t clients, std::uint64_t seed = 7,
                                   const learn::Task* task = nullptr) {
  auto made = sim::make_availability(spec, {clients, task}, Rng(seed));
  REQUIRE_MESSAGE(made, made.error().message);
  return std::move(*made);
}

// Returns for each of the first slots whether the client is up.
std::vector<bool> slots_of(const Availability& availability, ClientId client, Duration slot,
                           std::size_t slots) {
  std::vector<bool> up;
  Phase phase = availability.first(client);
  for (std::size_t s = 0; s < slots; ++s) {
    while (phase.until && *phase.until <= Time(slot * static_cast<std::int64_t>(s)))
      phase = availability.next(client, phase);
    up.push_back(phase.up);
  }
  return up;
}

double correlation(const std::vector<bool>& a, const std::vector<bool>& b) {
  double mean_a = 0;
  double mean_b = 0;
  double both = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    mean_a += a[i] ? 1 : 0;
    mean_b += b[i] ? 1 : 0;
    both += a[i] && b[i] ? 1 : 0;
  }
  const auto n = static_cast<double>(a.size());
  mean_a /= n;
  mean_b /= n;
  return (both / n - mean_a * mean_b) / std::sqrt(mean_a * (1 - mean_a) * mean_b * (1 - mean_b));
}

AvailabilitySpec gilbert_elliott(double p_up_down, double p_down_up) {
  return {.kind = AvailabilityKind::kGilbertElliott,
          .slot = seconds(60),
          .p_up_down = p_up_down,
          .p_down_up = p_down_up};
}

AvailabilitySpec shock(double a, double z, std::size_t groups) {
  AvailabilitySpec spec{.kind = AvailabilityKind::kCommonShock, .slot = seconds(60)};
  spec.a = a;
  spec.z = z;
  spec.groups = groups;
  return spec;
}

}  // namespace

TEST_CASE("normal: quantiles are those of published tables, and invert the distribution function") {
  CHECK(sim::normal_quantile(0.5) == doctest::Approx(0.0));
  CHECK(sim::normal_quantile(0.9) == doctest::Approx(1.2815515655446004).epsilon(1e-13));
  CHECK(sim::normal_quantile(0.975) == doctest::Approx(1.959963984540054).epsilon(1e-13));
  CHECK(sim::normal_quantile(0.001) == doctest::Approx(-3.090232306167813).epsilon(1e-13));
  CHECK(sim::normal_quantile(1e-10) == doctest::Approx(-6.361340902404056).epsilon(1e-13));
  for (double z = -37; z <= 5; z += 0.37)
    CHECK(sim::normal_quantile(sim::normal_cdf(z)) == doctest::Approx(z).epsilon(1e-9));
  CHECK(std::isinf(sim::normal_quantile(0)));
  CHECK(std::isinf(sim::normal_quantile(1)));
}

TEST_CASE("availability: always is up from the beginning and never changes") {
  const Phase phase = make({}, 3)->first(ClientId(2));
  CHECK(phase.up);
  CHECK(!phase.until);
}

TEST_CASE("availability: Gilbert-Elliott is up for its stationary fraction of slots, from the first on") {
  const auto availability = make(gilbert_elliott(0.05, 0.02), 4000);
  const double stationary = 0.02 / 0.07;
  double first = 0;
  double total = 0;
  for (std::uint32_t c = 0; c < 4000; ++c) {
    const auto up = slots_of(*availability, ClientId(c), seconds(60), 200);
    first += up[0] ? 1 : 0;
    for (const bool slot : up) total += slot ? 1 : 0;
  }
  // Standard errors: sqrt(pi (1 - pi) / 4000); with the slots' correlation .93^k, sqrt(.204 * 27.6 / 800000).
  CHECK(std::abs(first / 4000 - stationary) < 4 * 0.00714);
  CHECK(std::abs(total / 800'000 - stationary) < 4 * 0.00265);
}

TEST_CASE("availability: Gilbert-Elliott's runs are geometric, in whole slots") {
  const auto availability = make(gilbert_elliott(0.05, 0.02), 4000);
  struct Runs {
    double p;
    double count = 0, sum = 0, of_one = 0, above_20 = 0;
  };
  std::map<bool, Runs> runs{{true, {0.05}}, {false, {0.02}}};
  for (std::uint32_t c = 0; c < 4000; ++c) {
    Time from{};
    Phase phase = availability->first(ClientId(c));
    for (int run = 0; run < 10; ++run) {
      REQUIRE(phase.until.has_value());
      const Duration length = *phase.until - from;
      REQUIRE(length % seconds(60) == Duration{});
      const auto slots = static_cast<double>(length / seconds(60));
      Runs& kind = runs.at(phase.up);
      ++kind.count;
      kind.sum += slots;
      kind.of_one += slots == 1 ? 1 : 0;
      kind.above_20 += slots > 20 ? 1 : 0;
      from = *phase.until;
      const Phase after = availability->next(ClientId(c), phase);
      REQUIRE(after.up != phase.up);
      phase = after;
    }
  }
  for (const auto& [up, kind] : runs) {
    CAPTURE(up);
    const double n = kind.count;
    CHECK(std::abs(kind.sum / n - 1 / kind.p) < 4 * std::sqrt((1 - kind.p) / n) / kind.p);
    CHECK(std::abs(kind.of_one / n - kind.p) < 4 * std::sqrt(kind.p * (1 - kind.p) / n));
    const double tail = std::pow(1 - kind.p, 20);
    CHECK(std::abs(kind.above_20 / n - tail) < 4 * std::sqrt(tail * (1 - tail) / n));
  }
}

TEST_CASE("availability: Gilbert-Elliott with sure changes alternates, without a way down it stays up") {
  const auto alternating = slots_of(*make(gilbert_elliott(1, 1), 1), ClientId(0), seconds(60), 10);
  for (std::size_t s = 1; s < alternating.size(); ++s) CHECK(alternating[s] != alternating[s - 1]);
  const auto staying = make(gilbert_elliott(0, 0.5), 20);
  for (std::uint32_t c = 0; c < 20; ++c) {
    CHECK(staying->first(ClientId(c)).up);
    CHECK(!staying->first(ClientId(c)).until);
  }
}

TEST_CASE("availability: a common shock correlates a group by a(1-z)/(1-az) and nobody else") {
  constexpr std::size_t kSlots = 20'000;
  const auto availability = make(shock(0.8, 0.7, 2), 6);
  std::vector<std::vector<bool>> up;
  for (std::uint32_t c = 0; c < 6; ++c)
    up.push_back(slots_of(*availability, ClientId(c), seconds(60), kSlots));
  std::map<std::size_t, std::set<std::size_t>> partners;
  for (std::size_t i = 0; i < 6; ++i) {
    const double fraction =
        static_cast<double>(std::count(up[i].begin(), up[i].end(), true)) / static_cast<double>(kSlots);
    CHECK(std::abs(fraction - 0.56) < 4 * 0.0036);
    partners[i].insert(i);
    for (std::size_t j = 0; j < 6; ++j) {
      if (i == j) continue;
      const double measured = correlation(up[i], up[j]);
      const bool together = measured > 0.25;
      if (together) partners[i].insert(j);
      // 0.8 * 0.3 / 0.44; the standard error is about 1 / sqrt(slots) = .007.
      CHECK(std::abs(measured - (together ? 0.5455 : 0.0)) < 0.03);
    }
  }
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(partners[i].size() == 3);
    for (const std::size_t j : partners[i]) CHECK(partners[j] == partners[i]);
  }
}

TEST_CASE("availability: with z = 1 the devices of a group are independent") {
  const auto availability = make(shock(0.56, 1, 1), 2);
  const auto first = slots_of(*availability, ClientId(0), seconds(60), 20'000);
  const auto second = slots_of(*availability, ClientId(1), seconds(60), 20'000);
  CHECK(std::abs(correlation(first, second)) < 0.03);
}

TEST_CASE("availability: a device that a common shock never reaches is not looked at again and again") {
  const auto always = make(shock(1, 1, 1), 1);
  CHECK(always->first(ClientId(0)).up);
  CHECK(!always->first(ClientId(0)).until);
  // Down for 1 / (a z) = a million slots at a time: the phase ends after a bounded number of them.
  const auto rarely = make(shock(0.001, 0.001, 1), 1);
  Phase phase = rarely->first(ClientId(0));
  CHECK(!phase.up);
  CHECK(*phase.until == Time(seconds(60) * static_cast<std::int64_t>(sim::kLookAhead)));
  phase = rarely->next(ClientId(0), phase);
  CHECK(*phase.until > Time(seconds(60) * static_cast<std::int64_t>(sim::kLookAhead)));
}

TEST_CASE("availability: groups tied to labels hold the same labels, others are mixed") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const sim::SimulatedRun run(data.path(),
                              {"data.partition.clients=20", "data.partition.kind=pathological",
                               "data.partition.classes_per_client=1", "sampling.clients_per_round=2"});
  const auto label_of = [&](std::uint32_t client) {
    return int{run.task->data().labels[run.task->samples_of(ClientId(client)).front()]};
  };
  // With a = 1 the members of a group are up and down together, which reveals the groups.
  AvailabilitySpec spec = shock(1, 0.5, 10);
  const auto groups = [&](bool tied) {
    spec.tied_to_labels = tied;
    const auto availability = make(spec, 20, 7, run.task.get());
    std::map<std::vector<bool>, std::set<std::uint32_t>> members;
    for (std::uint32_t c = 0; c < 20; ++c)
      members[slots_of(*availability, ClientId(c), seconds(60), 100)].insert(c);
    return members;
  };
  const auto tied = groups(true);
  CHECK(tied.size() == 10);
  for (const auto& [history, members] : tied) {
    REQUIRE(members.size() == 2);
    CHECK(label_of(*members.begin()) == label_of(*members.rbegin()));
  }
  std::size_t alike = 0;
  for (const auto& [history, members] : groups(false)) {
    REQUIRE(members.size() == 2);
    if (label_of(*members.begin()) == label_of(*members.rbegin())) ++alike;
  }
  CHECK(alike < 5);
}

TEST_CASE("availability: more groups than clients are refused") {
  const auto made = sim::make_availability(shock(0.9, 0.7, 11), {10, nullptr}, Rng(1));
  REQUIRE(!made);
  CHECK(made.error().message == "simulation.availability.groups is 11, but the run has only 10 clients");
}

TEST_CASE(
    "availability: it does not matter who is asked, when, or how often but the seed and the client do") {
  for (const AvailabilitySpec& spec :
       {gilbert_elliott(0.1, 0.1), AvailabilitySpec{.kind = AvailabilityKind::kDiurnal},
        shock(0.8, 0.7, 3)}) {
    CAPTURE(static_cast<int>(spec.kind));
    const auto one = make(spec, 50);
    const auto other = make(spec, 50);
    const auto seeded = make(spec, 50, 8);
    std::map<std::pair<std::uint32_t, int>, Phase> forwards;
    for (std::uint32_t c = 0; c < 50; ++c)
      for (int hour = 0; hour < 100; hour += 7)
        forwards[{c, hour}] = test::phase_at(*one, ClientId(c), Time(seconds(3600.0 * hour)));
    std::size_t differing = 0;
    std::set<std::int64_t> ends;
    for (int hour = 98; hour >= 0; hour -= 7)
      for (std::uint32_t c = 50; c-- > 0;) {
        const Time time(seconds(3600.0 * hour));
        const Phase again = test::phase_at(*other, ClientId(c), time);
        const Phase& before = forwards.at({c, hour});
        CHECK(again.up == before.up);
        CHECK(again.until == before.until);
        CHECK(again.index == before.index);
        CHECK((!again.until || *again.until > time));
        if (again.until) ends.insert(again.until->time_since_epoch().count());
        if (test::phase_at(*seeded, ClientId(c), time).until != before.until) ++differing;
      }
    CHECK(differing > 300);
    CHECK(ends.size() > 50);
  }
}
