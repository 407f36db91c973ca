#include "learn/data/partition.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace fedge;
using namespace fedge::learn;

namespace {

// Labels of `per_class` samples of each class, interleaved as in a shuffled data set.
std::vector<Label> balanced(std::size_t classes, std::size_t per_class) {
  std::vector<Label> labels(classes * per_class);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<Label>(i * 7 % classes);
  return labels;
}

PartitionSpec spec_of(PartitionKind kind, std::size_t clients) {
  PartitionSpec spec;
  spec.kind = kind;
  spec.clients = clients;
  return spec;
}

Partition make(const PartitionSpec& spec, const std::vector<Label>& labels, std::uint64_t seed = 1) {
  auto result = partition(spec, labels, 10, Rng(seed));
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return std::move(result).value();
}

std::vector<std::size_t> sizes(const Partition& parts) {
  std::vector<std::size_t> out;
  for (std::size_t c = 0; c < parts.clients(); ++c) out.push_back(parts.of(c).size());
  return out;
}

std::vector<std::size_t> class_counts(const Partition& parts, std::size_t client,
                                      const std::vector<Label>& labels) {
  std::vector<std::size_t> counts(10);
  for (const auto sample : parts.of(client)) ++counts[labels[sample]];
  return counts;
}

std::size_t distinct(const std::vector<std::size_t>& counts) {
  return static_cast<std::size_t>(std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; }));
}

// Checks that every sample number occurs at most once, in range and ascending within a client; returns their
// count.
std::size_t check_disjoint(const Partition& parts, std::size_t samples) {
  std::vector<bool> seen(samples);
  std::size_t total = 0;
  for (std::size_t c = 0; c < parts.clients(); ++c) {
    const auto part = parts.of(c);
    REQUIRE(std::is_sorted(part.begin(), part.end()));
    for (const auto sample : part) {
      REQUIRE(sample < samples);
      REQUIRE_FALSE(seen[sample]);
      seen[sample] = true;
      ++total;
    }
  }
  return total;
}

bool equal(const Partition& a, const Partition& b) {
  if (a.clients() != b.clients()) return false;
  for (std::size_t c = 0; c < a.clients(); ++c) {
    if (!std::ranges::equal(a.of(c), b.of(c))) return false;
  }
  return true;
}

void check_refused(const PartitionSpec& spec, const std::vector<Label>& labels, const std::string& key,
                   const std::string& words) {
  const auto result = partition(spec, labels, 10, Rng(1));
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kInvalid);
  CHECK_MESSAGE(result.error().message.starts_with("data.partition." + key + ": "), result.error().message);
  CHECK_MESSAGE(result.error().message.find(words) != std::string::npos, result.error().message);
}

}  // namespace

TEST_CASE("partition: every kind hands out each sample at most once, all where it should, and repeatably") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    std::vector<Label> labels(400 + rng.below(1200));
    for (auto& label : labels) label = static_cast<Label>(rng.below(10));
    for (const auto kind : {PartitionKind::kIid, PartitionKind::kDirichlet, PartitionKind::kPathological,
                            PartitionKind::kShards, PartitionKind::kLinear, PartitionKind::kSquare,
                            PartitionKind::kExponential}) {
      CAPTURE(static_cast<int>(kind));
      PartitionSpec spec = spec_of(kind, 5 + rng.below(kind == PartitionKind::kExponential ? 1 : 6));
      spec.alpha = 0.05 + rng.uniform();
      spec.classes_per_client = 2 + rng.below(4);
      spec.shards_per_client = 1 + rng.below(5);
      const Partition parts = make(spec, labels, seed);
      CHECK(parts.clients() == spec.clients);
      CHECK(check_disjoint(parts, labels.size()) == labels.size());
      const auto got = sizes(parts);
      CHECK(*std::min_element(got.begin(), got.end()) > 0);
      CHECK(equal(parts, make(spec, labels, seed)));
      CHECK_FALSE(equal(parts, make(spec, labels, seed + 1000)));
    }
  }
}

TEST_CASE("partition iid: sizes differ by one at most and labels are mixed as in the whole") {
  CHECK(sizes(make(spec_of(PartitionKind::kIid, 10), balanced(10, 10))) == std::vector<std::size_t>(10, 10));
  std::vector<Label> labels(103, 0);
  CHECK(sizes(make(spec_of(PartitionKind::kIid, 10), labels)) ==
        std::vector<std::size_t>{11, 11, 11, 10, 10, 10, 10, 10, 10, 10});
  const auto large = balanced(10, 6000);
  const Partition parts = make(spec_of(PartitionKind::kIid, 10), large);
  for (std::size_t c = 0; c < 10; ++c) {
    // 6000 of 60000 without replacement: 600 of each label, with a hypergeometric deviation of 22.
    for (const auto count : class_counts(parts, c, large))
      CHECK(std::abs(static_cast<int>(count) - 600) < 5 * 22);
  }
}

TEST_CASE("partition iid: samples_per_client gives exactly that many") {
  PartitionSpec spec = spec_of(PartitionKind::kIid, 7);
  spec.samples_per_client = 13;
  const Partition parts = make(spec, balanced(10, 10));
  CHECK(sizes(parts) == std::vector<std::size_t>(7, 13));
  CHECK(check_disjoint(parts, 100) == 91);
}

TEST_CASE("partition: linear, square and exponential sizes are the hand-computed ones") {
  const std::vector<Label> labels(1000, 3);
  const auto of = [&](PartitionKind kind, std::size_t clients, std::size_t samples) {
    return sizes(make(spec_of(kind, clients),
                      {labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(samples)}));
  };
  CHECK(of(PartitionKind::kLinear, 10, 55) == std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(of(PartitionKind::kLinear, 3, 100) == std::vector<std::size_t>{16, 33, 51});  // 16.7, 33.3, 50
  CHECK(of(PartitionKind::kSquare, 3, 14) == std::vector<std::size_t>{1, 4, 9});
  CHECK(of(PartitionKind::kSquare, 10, 385) ==
        std::vector<std::size_t>{1, 4, 9, 16, 25, 36, 49, 64, 81, 100});
  // e, e^2, e^3 over their sum 30.193: 0.09003, 0.24473, 0.66524.
  CHECK(of(PartitionKind::kExponential, 3, 1000) == std::vector<std::size_t>{90, 244, 666});
}

TEST_CASE("partition shards: 200 runs of 300 sorted samples, two to a client, at most two labels each") {
  const auto labels = balanced(10, 6000);
  const Partition parts = make(spec_of(PartitionKind::kShards, 100), labels);
  CHECK(check_disjoint(parts, labels.size()) == labels.size());
  std::size_t two_labels = 0;
  for (std::size_t c = 0; c < 100; ++c) {
    CHECK(parts.of(c).size() == 600);
    const auto counts = class_counts(parts, c, labels);
    CHECK(distinct(counts) <= 2);
    for (const auto count : counts) CHECK(count % 300 == 0);
    if (distinct(counts) == 2) ++two_labels;
  }
  // A client's second shard has the label of its first one with probability 19/199.
  CHECK(two_labels > 75);
  CHECK(two_labels < 100);
}

TEST_CASE(
    "partition pathological: each client has exactly its number of labels, each label evenly many holders") {
  const auto labels = balanced(10, 60);
  PartitionSpec spec = spec_of(PartitionKind::kPathological, 15);
  spec.classes_per_client = 2;  // 10 labels, 30 places: three clients hold each label, with 20 samples each
  const Partition parts = make(spec, labels);
  CHECK(check_disjoint(parts, labels.size()) == 600);
  std::vector<std::size_t> holders(10);
  for (std::size_t c = 0; c < 15; ++c) {
    const auto counts = class_counts(parts, c, labels);
    CHECK(distinct(counts) == 2);
    for (std::size_t k = 0; k < 10; ++k) {
      CHECK((counts[k] == 0 || counts[k] == 20));
      if (counts[k] > 0) ++holders[k];
    }
  }
  CHECK(holders == std::vector<std::size_t>(10, 3));
}

TEST_CASE("partition dirichlet: proportions have the mean and variance of Dirichlet(alpha)") {
  // A class's share of one client of n: mean 1/n, variance (n - 1) / (n^2 (n alpha + 1)).
  constexpr std::size_t kClients = 5;
  const auto labels = balanced(10, 2000);
  for (const double alpha : {0.1, 1.0, 20.0}) {
    CAPTURE(alpha);
    PartitionSpec spec = spec_of(PartitionKind::kDirichlet, kClients);
    spec.alpha = alpha;
    spec.min_size = 0;
    double sum = 0;
    double squares = 0;
    constexpr std::size_t kSeeds = 150;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Partition parts = make(spec, labels, seed);
      for (const auto count : class_counts(parts, 2, labels)) {
        const double share = static_cast<double>(count) / 2000.0;
        sum += share;
        squares += share * share;
      }
    }
    const double n = kSeeds * 10;
    const double mean = sum / n;
    const double variance = squares / n - mean * mean;
    const double expected = (kClients - 1.0) / (kClients * kClients * (kClients * alpha + 1.0));
    CHECK(std::abs(mean - 0.2) < 5 * std::sqrt(expected / n));
    CHECK(variance == doctest::Approx(expected).epsilon(0.15));
  }
}

TEST_CASE("partition dirichlet: min_size is kept, and an unreachable one is refused with what to change") {
  const auto labels = balanced(10, 100);
  PartitionSpec spec = spec_of(PartitionKind::kDirichlet, 10);
  spec.alpha = 0.3;
  spec.min_size = 40;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Partition parts = make(spec, labels, seed);
    for (const auto size : sizes(parts)) CHECK(size >= 40);
    CHECK(check_disjoint(parts, labels.size()) == 1000);
  }
  spec.min_size = 101;
  check_refused(spec, labels, "min_size",
                "10 clients with at least 101 samples each need more than the 1000");
  spec.min_size = 100;
  check_refused(spec, labels, "min_size", "in each of 1000 draws, some client had fewer than 100 samples");
}

TEST_CASE("partition dirichlet: a tiny alpha gives each label to one client, a huge one equal shares") {
  const auto labels = balanced(10, 100);
  PartitionSpec spec = spec_of(PartitionKind::kDirichlet, 4);
  spec.min_size = 0;
  spec.alpha = 1e-4;
  const Partition skewed = make(spec, labels);
  CHECK(check_disjoint(skewed, labels.size()) == 1000);
  for (std::size_t c = 0; c < 4; ++c)
    for (const auto count : class_counts(skewed, c, labels)) CHECK((count == 0 || count == 100));
  spec.alpha = 1e6;
  const Partition even = make(spec, labels);
  for (std::size_t c = 0; c < 4; ++c)
    for (const auto count : class_counts(even, c, labels)) CHECK(std::abs(static_cast<int>(count) - 25) <= 2);
}

TEST_CASE(
    "partition dirichlet: 1000 clients with 60 samples at alpha 0.1 have 3.7 labels and 68 % in the "
    "largest") {
  // The two means come from an independent NumPy program for the same workload.
  const auto labels = balanced(10, 6000);
  PartitionSpec spec = spec_of(PartitionKind::kDirichlet, 1000);
  spec.alpha = 0.1;
  spec.samples_per_client = 60;
  const Partition parts = make(spec, labels, 42);
  CHECK(check_disjoint(parts, labels.size()) == 60000);
  double label_count = 0;
  double largest = 0;
  for (std::size_t c = 0; c < 1000; ++c) {
    CHECK(parts.of(c).size() == 60);
    const auto counts = class_counts(parts, c, labels);
    label_count += static_cast<double>(distinct(counts)) / 1000;
    largest += static_cast<double>(*std::max_element(counts.begin(), counts.end())) / 60 / 1000;
  }
  CHECK(label_count == doctest::Approx(3.7).epsilon(0.03));
  CHECK(largest == doctest::Approx(0.68).epsilon(0.03));
}

TEST_CASE("partition dirichlet: when a label runs out the others fill up, down to the last sample") {
  std::vector<Label> labels(100, 4);
  labels[17] = 2;
  PartitionSpec spec = spec_of(PartitionKind::kDirichlet, 10);
  spec.alpha = 1e-4;
  spec.samples_per_client = 10;
  const Partition parts = make(spec, labels);
  CHECK(check_disjoint(parts, 100) == 100);
  CHECK(sizes(parts) == std::vector<std::size_t>(10, 10));
}

TEST_CASE("partition: what cannot be done is refused and names the key to change") {
  const auto labels = balanced(10, 10);
  check_refused(spec_of(PartitionKind::kIid, 101), labels, "clients", "101 clients cannot share 100 samples");
  check_refused(spec_of(PartitionKind::kIid, 0), labels, "clients", "expected 1 to 100");
  check_refused(spec_of(PartitionKind::kIid, 1), {}, "clients", "cannot share 0 samples");
  PartitionSpec spec = spec_of(PartitionKind::kIid, 10);
  spec.samples_per_client = 11;
  check_refused(spec, labels, "samples_per_client", "10 clients with 11 samples each need more than the 100");
  spec = spec_of(PartitionKind::kPathological, 10);
  spec.classes_per_client = 11;
  check_refused(spec, labels, "classes_per_client",
                "11 labels for each client, but the data set has only 10");
  spec = spec_of(PartitionKind::kPathological, 60);
  check_refused(spec, labels, "clients", "10 samples for 12 clients");
  spec = spec_of(PartitionKind::kShards, 60);
  check_refused(spec, labels, "shards_per_client", "60 clients with 2 shards each");
  check_refused(spec_of(PartitionKind::kExponential, 30), labels, "clients", "lower clients");
}

TEST_CASE("partition: replicate draws each client's samples as if it were the first") {
  const auto labels = balanced(10, 40);
  PartitionSpec spec = spec_of(PartitionKind::kDirichlet, 5);
  spec.samples_per_client = 30;
  spec.alpha = 0.3;
  const auto divided = make(spec, labels);
  spec.clients = 100'000;  // more than there are samples
  spec.replicate = true;
  const auto shared = make(spec, labels);
  CHECK(shared.clients() == 100'000);
  CHECK(class_counts(shared, 0, labels) == class_counts(divided, 0, labels));
  for (const std::size_t client : {0U, 1U, 499U, 99'999U}) {
    const auto samples = shared.of(client);
    REQUIRE(samples.size() == 30);
    CHECK(shared.size_of(client) == 30);
    CHECK(std::is_sorted(samples.begin(), samples.end()));
    CHECK(std::set<std::uint32_t>(samples.begin(), samples.end()).size() == 30);
    CHECK(*(samples.end() - 1) < labels.size());
    const auto again = shared.of(client);
    CHECK(std::equal(samples.begin(), samples.end(), again.begin(), again.end()));
  }
  CHECK(class_counts(shared, 1, labels) != class_counts(shared, 2, labels));
}

TEST_CASE(
    "partition: the samples of replicated clients have the labels of the mix, and every sample its share") {
  const auto labels = balanced(10, 30);
  PartitionSpec spec = spec_of(PartitionKind::kIid, 20'000);
  spec.samples_per_client = 30;
  spec.replicate = true;
  const auto uniform = make(spec, labels);
  std::vector<double> held(labels.size(), 0);
  for (std::size_t client = 0; client < uniform.clients(); ++client)
    for (const auto sample : uniform.of(client)) ++held[sample];
  // Each of 300 samples is held by a tenth of the clients: binomial, standard deviation 42.4.
  for (const double clients : held) CHECK(std::abs(clients - 2000) < 5 * 42.4);

  spec.samples_per_client = 100;  // drawn by another method than few samples
  const auto many = make(spec, labels);
  std::fill(held.begin(), held.end(), 0.0);
  for (std::size_t client = 0; client < 3000; ++client)
    for (const auto sample : many.of(client)) ++held[sample];
  for (const double clients : held) CHECK(std::abs(clients - 1000) < 5 * 25.8);

  spec.kind = PartitionKind::kDirichlet;
  spec.alpha = 0.2;
  spec.samples_per_client = 25;
  const auto skewed = make(spec, labels);
  std::vector<double> counts(10, 0);
  double largest = 0;
  for (std::size_t client = 0; client < 4000; ++client) {
    const auto own = class_counts(skewed, client, labels);
    for (std::size_t k = 0; k < 10; ++k) counts[k] += static_cast<double>(own[k]);
    largest += static_cast<double>(*std::max_element(own.begin(), own.end())) / 25;
  }
  for (const double count : counts) CHECK(std::abs(count / 100'000 - 0.1) < 0.015);
  CHECK(largest / 4000 > 0.5);  // alpha 10 would give about 0.2
}

TEST_CASE("partition: replicated natural groups are dealt round") {
  const std::vector<Label> labels = {3, 1, 3, 5, 1};  // groups 0, 2 and 4 have no samples
  PartitionSpec spec = spec_of(PartitionKind::kNatural, 7);
  spec.replicate = true;
  const auto parts = partition(spec, labels, 6, Rng(1));
  REQUIRE(parts);
  const auto of = [&](std::size_t client) {
    const auto samples = parts->of(client);
    return std::vector<std::uint32_t>(samples.begin(), samples.end());
  };
  using Samples = std::vector<std::uint32_t>;
  CHECK(of(0) == Samples{1, 4});
  CHECK(of(1) == Samples{0, 2});
  CHECK(of(2) == Samples{3});
  CHECK(of(6) == of(0));
  CHECK(parts->size_of(4) == 2);
}

TEST_CASE("partition: what replicate cannot do, and how more clients than samples are possible") {
  const auto labels = balanced(10, 10);
  const auto refused = partition(spec_of(PartitionKind::kIid, 101), labels, 10, Rng(1));
  REQUIRE(!refused);
  CHECK(refused.error().message ==
        "data.partition.clients: 101 clients cannot share 100 samples; expected 1 to 100, or "
        "data.partition.replicate = true, so that several clients may hold the same samples");
  CHECK(partition(spec_of(PartitionKind::kShards, 101), labels, 10, Rng(1)).error().message ==
        "data.partition.clients: 101 clients cannot share 100 samples; expected 1 to 100");
  PartitionSpec spec = spec_of(PartitionKind::kIid, 3);
  spec.replicate = true;
  CHECK(partition(spec, {}, 10, Rng(1)).error().message.find("cannot share 0 samples") != std::string::npos);
  spec.samples_per_client = 101;
  const auto too_many = partition(spec, labels, 10, Rng(1));
  REQUIRE(!too_many);
  CHECK(
      too_many.error().message ==
      "data.partition.samples_per_client: each client holds 101 different samples, but the data set has only "
      "100");
}

TEST_CASE("partition: renamed() gives the same samples other numbers") {
  const auto labels = balanced(4, 5);
  std::vector<std::uint32_t> names(labels.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) names[i] = 3 * i + 1;
  PartitionSpec spec = spec_of(PartitionKind::kDirichlet, 6);
  spec.samples_per_client = 3;
  for (const bool replicate : {false, true}) {
    spec.replicate = replicate;
    const auto parts = partition(spec, labels, 4, Rng(2));
    REQUIRE(parts);
    const Partition other = parts->renamed(names);
    CHECK(other.clients() == 6);
    for (std::size_t client = 0; client < 6; ++client) {
      const auto before = parts->of(client);
      const auto after = other.of(client);
      REQUIRE(before.size() == after.size());
      for (std::size_t i = 0; i < before.size(); ++i)
        CHECK(*(after.begin() + static_cast<std::ptrdiff_t>(i)) ==
              names[*(before.begin() + static_cast<std::ptrdiff_t>(i))]);
    }
  }
}
