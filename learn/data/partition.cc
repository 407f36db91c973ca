#include "learn/data/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>

#include "core/check.h"

namespace fedge::learn {
namespace {

using Samples = std::vector<std::uint32_t>;

// Limits of dirichlet's attempts to reach min_size: 1000 attempts, or about five seconds of draws.
constexpr std::size_t kMaxAttempts = 1000;
constexpr std::size_t kMaxGammaDraws = 20'000'000;

struct Input {
  const PartitionSpec& spec;
  std::span<const Label> labels;
  std::size_t classes;
  Rng rng;
};

Error impossible(const std::string& key, const std::string& message) {
  return invalid("data.partition." + key + ": " + message);
}

std::string count_of(std::size_t count, const char* what) { return std::to_string(count) + " " + what; }

// Start of part `part` if `total` elements are cut into `parts` runs. Lengths differ by at most one, longer
// ones first.
std::size_t even_start(std::size_t total, std::size_t parts, std::size_t part) {
  return part * (total / parts) + std::min(part, total % parts);
}

Samples shuffled_samples(const Input& in) {
  Samples order(in.labels.size());
  std::iota(order.begin(), order.end(), 0U);
  Rng rng = in.rng.fork("shuffle");
  rng.shuffle(std::span(order));
  return order;
}

std::vector<Samples> samples_by_class(const Input& in) {
  std::vector<Samples> by_class(in.classes);
  for (std::uint32_t i = 0; i < in.labels.size(); ++i) by_class[in.labels[i]].push_back(i);
  return by_class;
}

void shuffle_each(std::vector<Samples>& by_class, const Input& in) {
  for (std::size_t k = 0; k < by_class.size(); ++k) {
    Rng rng = in.rng.fork("shuffle-class", k);
    rng.shuffle(std::span(by_class[k]));
  }
}

std::vector<std::size_t> starts_of(std::span<const std::size_t> sizes) {
  std::vector<std::size_t> starts(sizes.size() + 1, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) starts[i + 1] = starts[i] + sizes[i];
  return starts;
}

Partition sorted_partition(Samples samples, std::vector<std::size_t> starts) {
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    std::sort(samples.begin() + static_cast<std::ptrdiff_t>(starts[i]),
              samples.begin() + static_cast<std::ptrdiff_t>(starts[i + 1]));
  }
  return {std::move(samples), std::move(starts)};
}

// Deals class k's samples in runs: client c gets share[c * classes + k] of them.
Partition deal(const std::vector<Samples>& by_class, std::span<const std::size_t> share,
               std::size_t clients) {
  const std::size_t classes = by_class.size();
  std::vector<std::size_t> sizes(clients, 0);
  for (std::size_t i = 0; i < share.size(); ++i) sizes[i / classes] += share[i];
  std::vector<std::size_t> starts = starts_of(sizes);
  Samples samples(starts.back());
  std::vector<std::size_t> taken(classes, 0);
  std::size_t at = 0;
  for (std::size_t i = 0; i < share.size(); ++i) {
    const std::size_t k = i % classes;
    FEDGE_CHECK(taken[k] + share[i] <= by_class[k].size(), "more samples of a class dealt than there are");
    std::copy_n(by_class[k].begin() + static_cast<std::ptrdiff_t>(taken[k]), share[i],
                samples.begin() + static_cast<std::ptrdiff_t>(at));
    taken[k] += share[i];
    at += share[i];
  }
  return sorted_partition(std::move(samples), std::move(starts));
}

Result<Partition> iid(const Input& in) {
  const std::size_t clients = in.spec.clients;
  Samples order = shuffled_samples(in);
  if (in.spec.samples_per_client > 0) order.resize(clients * in.spec.samples_per_client);
  std::vector<std::size_t> starts(clients + 1);
  for (std::size_t i = 0; i <= clients; ++i) starts[i] = even_start(order.size(), clients, i);
  return sorted_partition(std::move(order), std::move(starts));
}

// Draws the proportions over the clients for each class; nullopt if a client gets fewer than min_size
// samples.
std::optional<std::vector<std::size_t>> draw_shares(const Input& in, const std::vector<Samples>& by_class,
                                                    Rng rng) {
  const std::size_t clients = in.spec.clients;
  std::vector<std::size_t> share(clients * in.classes);
  std::vector<std::size_t> sizes(clients, 0);
  std::vector<double> proportions(clients);
  for (std::size_t k = 0; k < in.classes; ++k) {
    draw_dirichlet(in.spec.alpha, rng, proportions);
    const std::size_t total = by_class[k].size();
    double cumulative = 0;
    std::size_t begin = 0;
    for (std::size_t c = 0; c < clients; ++c) {
      cumulative += proportions[c];
      const auto cut = static_cast<std::size_t>(cumulative * static_cast<double>(total));
      const std::size_t end = c + 1 == clients ? total : std::clamp(cut, begin, total);
      share[c * in.classes + k] = end - begin;
      sizes[c] += end - begin;
      begin = end;
    }
  }
  if (*std::min_element(sizes.begin(), sizes.end()) < in.spec.min_size) return std::nullopt;
  return share;
}

Result<Partition> dirichlet_over_clients(const Input& in) {
  const PartitionSpec& spec = in.spec;
  if (spec.min_size > in.labels.size() / spec.clients) {
    return impossible("min_size", count_of(spec.clients, "clients") + " with at least " +
                                      count_of(spec.min_size, "samples each need more than the ") +
                                      count_of(in.labels.size(), "samples of the data set"));
  }
  auto by_class = samples_by_class(in);
  shuffle_each(by_class, in);
  const std::size_t attempts =
      std::clamp<std::size_t>(kMaxGammaDraws / (spec.clients * in.classes), 1, kMaxAttempts);
  for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
    const auto share = draw_shares(in, by_class, in.rng.fork("proportions", attempt));
    if (share) return deal(by_class, *share, spec.clients);
  }
  return impossible("min_size", "in each of " + count_of(attempts, "draws") +
                                    ", some client had fewer than " + count_of(spec.min_size, "samples") +
                                    "; lower min_size or clients, raise alpha, or set samples_per_client");
}

Result<Partition> dirichlet_over_labels(const Input& in) {
  auto by_class = samples_by_class(in);
  shuffle_each(by_class, in);
  std::vector<std::size_t> left(in.classes);
  for (std::size_t k = 0; k < in.classes; ++k) left[k] = by_class[k].size();
  std::vector<std::size_t> share(in.spec.clients * in.classes, 0);
  std::vector<double> mix(in.classes);
  for (std::size_t c = 0; c < in.spec.clients; ++c) {
    Rng rng = in.rng.fork("mix", c);
    draw_dirichlet(in.spec.alpha, rng, mix);
    for (std::size_t i = 0; i < in.spec.samples_per_client; ++i) {
      const std::size_t k = draw_class(mix, left, rng);
      --left[k];
      ++share[c * in.classes + k];
    }
  }
  return deal(by_class, share, in.spec.clients);
}

Result<Partition> pathological(const Input& in) {
  const std::size_t clients = in.spec.clients;
  const std::size_t held = in.spec.classes_per_client;
  if (held > in.classes) {
    return impossible(
        "classes_per_client",
        count_of(held, "labels for each client, but the data set has only ") + std::to_string(in.classes));
  }
  std::vector<std::vector<std::size_t>> holders(in.classes);
  std::vector<std::size_t> deck(in.classes);
  for (std::size_t c = 0; c < clients; ++c) {
    std::iota(deck.begin(), deck.end(), std::size_t{0});
    Rng rng = in.rng.fork("classes", c);
    rng.shuffle(std::span(deck));
    std::stable_sort(deck.begin(), deck.end(),
                     [&](std::size_t a, std::size_t b) { return holders[a].size() < holders[b].size(); });
    for (std::size_t i = 0; i < held; ++i) holders[deck[i]].push_back(c);
  }
  auto by_class = samples_by_class(in);
  shuffle_each(by_class, in);
  std::vector<std::size_t> share(clients * in.classes, 0);
  for (std::size_t k = 0; k < in.classes; ++k) {
    if (by_class[k].size() < holders[k].size()) {
      return impossible(
          "clients", "label " + std::to_string(k) + " has " + count_of(by_class[k].size(), "samples for ") +
                         count_of(holders[k].size(), "clients; lower clients or classes_per_client"));
    }
    for (std::size_t i = 0; i < holders[k].size(); ++i) {
      share[holders[k][i] * in.classes + k] = even_start(by_class[k].size(), holders[k].size(), i + 1) -
                                              even_start(by_class[k].size(), holders[k].size(), i);
    }
  }
  return deal(by_class, share, clients);
}

Result<Partition> shards(const Input& in) {
  const std::size_t clients = in.spec.clients;
  const std::size_t each = in.spec.shards_per_client;
  if (each > in.labels.size() / clients) {
    return impossible("shards_per_client", count_of(clients, "clients with ") +
                                               count_of(each, "shards each need ") + "more than the " +
                                               count_of(in.labels.size(), "samples of the data set"));
  }
  Samples sorted;
  sorted.reserve(in.labels.size());
  for (const Samples& one : samples_by_class(in)) sorted.insert(sorted.end(), one.begin(), one.end());
  std::vector<std::size_t> deck(clients * each);
  std::iota(deck.begin(), deck.end(), std::size_t{0});
  Rng rng = in.rng.fork("shards");
  rng.shuffle(std::span(deck));
  Samples samples;
  samples.reserve(sorted.size());
  std::vector<std::size_t> starts = {0};
  for (std::size_t i = 0; i < deck.size(); ++i) {
    const std::size_t begin = even_start(sorted.size(), deck.size(), deck[i]);
    const std::size_t end = even_start(sorted.size(), deck.size(), deck[i] + 1);
    samples.insert(samples.end(), sorted.begin() + static_cast<std::ptrdiff_t>(begin),
                   sorted.begin() + static_cast<std::ptrdiff_t>(end));
    if ((i + 1) % each == 0) starts.push_back(samples.size());
  }
  return sorted_partition(std::move(samples), std::move(starts));
}

// Each client's relative size. Integers where possible, so that the division in graded() is exact. Powers of
// e are relative to the last client's, so that they cannot overflow.
std::vector<double> relative_sizes(PartitionKind kind, std::size_t clients) {
  std::vector<double> weights(clients);
  double power = 1.0;
  for (std::size_t i = clients; i-- > 0;) {
    const auto number = static_cast<double>(i + 1);
    weights[i] = power;
    if (kind == PartitionKind::kLinear) weights[i] = number;
    if (kind == PartitionKind::kSquare) weights[i] = number * number;
    power /= std::numbers::e;
  }
  return weights;
}

Result<Partition> graded(const Input& in) {
  const std::size_t clients = in.spec.clients;
  const std::vector<double> weights = relative_sizes(in.spec.kind, clients);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto total = static_cast<double>(in.labels.size());
  std::vector<std::size_t> starts(clients + 1, 0);
  for (std::size_t i = 0; i < clients; ++i) {
    starts[i + 1] = starts[i] + static_cast<std::size_t>(weights[i] * total / sum);
  }
  starts[clients] = in.labels.size();
  if (starts[1] == 0) {
    return impossible("clients", "with partition sizes that grow this fast, the first of " +
                                     count_of(clients, "clients would get none of the ") +
                                     count_of(in.labels.size(), "samples; lower clients"));
  }
  return sorted_partition(shuffled_samples(in), std::move(starts));
}

Result<Partition> natural(const Input& in) {
  const std::size_t clients = in.spec.clients;
  Samples samples;
  samples.reserve(in.labels.size());
  std::vector<std::size_t> starts = {0};
  const std::vector<Samples> groups = samples_by_class(in);
  for (std::size_t client = 0; client < clients; ++client) {
    for (std::size_t group = client; group < groups.size(); group += clients)
      samples.insert(samples.end(), groups[group].begin(), groups[group].end());
    if (samples.size() == starts.back())
      return impossible("clients", "client " + std::to_string(client) + " would get none of the " +
                                       count_of(groups.size(), "groups; lower clients"));
    starts.push_back(samples.size());
  }
  return sorted_partition(std::move(samples), std::move(starts));
}

// The partition of clients that may hold the same samples.
Result<Partition> replicated(const Input& in) {
  const PartitionSpec& spec = in.spec;
  std::vector<Samples> by_class = samples_by_class(in);
  if (spec.kind == PartitionKind::kNatural) {
    Samples samples;
    std::vector<std::size_t> starts = {0};
    for (const Samples& group : by_class) {
      if (group.empty()) continue;
      samples.insert(samples.end(), group.begin(), group.end());
      starts.push_back(samples.size());
    }
    return Partition(std::move(samples), std::move(starts), spec.clients);
  }
  if (spec.samples_per_client > in.labels.size())
    return impossible("samples_per_client",
                      "each client holds " + count_of(spec.samples_per_client, "different ") +
                          "samples, but the data set has only " + std::to_string(in.labels.size()));
  const double alpha = spec.kind == PartitionKind::kDirichlet ? spec.alpha : 0;
  return Partition(ReplicatedSamples(std::move(by_class), alpha, spec.samples_per_client, in.rng),
                   spec.clients);
}

Result<Partition> by_kind(const Input& in) {
  switch (in.spec.kind) {
    case PartitionKind::kIid:
      return iid(in);
    case PartitionKind::kDirichlet:
      return in.spec.samples_per_client > 0 ? dirichlet_over_labels(in) : dirichlet_over_clients(in);
    case PartitionKind::kPathological:
      return pathological(in);
    case PartitionKind::kShards:
      return shards(in);
    case PartitionKind::kLinear:
    case PartitionKind::kSquare:
    case PartitionKind::kExponential:
      return graded(in);
    case PartitionKind::kNatural:
      return natural(in);
    case PartitionKind::kOwn:
      break;  // the clients' own files
  }
  FEDGE_CHECK(false, "a partition of no known kind");
}

}  // namespace

Partition Partition::renamed(std::span<const std::uint32_t> names) const {
  if (drawn_) return {drawn_->renamed(names), clients_};
  Partition result = *this;
  for (std::uint32_t& sample : result.samples_) sample = names[sample];
  return result;
}

Rng partition_stream(const PartitionSpec& spec, const Rng& rng) { return spec.seed ? Rng(*spec.seed) : rng; }

Result<Partition> partition(const PartitionSpec& spec, std::span<const Label> labels, std::size_t classes,
                            const Rng& rng) {
  FEDGE_CHECK(classes > 0 && classes <= kMaxClasses, "labels have 16 bits");
  FEDGE_CHECK(labels.size() <= std::numeric_limits<std::uint32_t>::max(), "sample numbers have 32 bits");
  FEDGE_CHECK(std::all_of(labels.begin(), labels.end(), [&](Label label) { return label < classes; }),
              "a label is not below the number of classes");
  if (spec.kind == PartitionKind::kOwn)
    return impossible("kind",
                      "\"own\" means that every client has its own data, so there is nothing to divide here");
  const Input input{spec, labels, classes, partition_stream(spec, rng).fork("partition")};
  const bool possible = spec.clients > 0 && !labels.empty();
  if (spec.replicate && possible) return replicated(input);
  if (!possible || spec.clients > labels.size()) {
    const bool may_replicate =
        possible && (spec.kind == PartitionKind::kIid || spec.kind == PartitionKind::kNatural ||
                     spec.kind == PartitionKind::kDirichlet);
    return impossible(
        "clients",
        count_of(spec.clients, "clients cannot share ") + count_of(labels.size(), "samples; expected 1 to ") +
            std::to_string(labels.size()) +
            (may_replicate ? ", or data.partition.replicate = true, so that several clients may hold "
                             "the same samples"
                           : ""));
  }
  if (spec.samples_per_client > labels.size() / spec.clients) {
    return impossible("samples_per_client",
                      count_of(spec.clients, "clients with ") +
                          count_of(spec.samples_per_client, "samples each need more than the ") +
                          count_of(labels.size(), "samples of the data set"));
  }
  return by_kind(input);
}

}  // namespace fedge::learn
