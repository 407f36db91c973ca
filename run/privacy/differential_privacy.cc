#include "run/privacy/differential_privacy.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "aggregation/aggregators/mean.h"
#include "aggregation/samplers/poisson.h"
#include "core/text.h"
#include "privacy/differential/accounting/calibration.h"
#include "privacy/differential/noise.h"
#include "run/privacy/private_statistics.h"
#include "run/privacy/private_update.h"
#include "run/recipe.h"
#include "run/run_config.h"

namespace fedge::run {
namespace {

using Spec = DifferentialPrivacySpec;

constexpr const char* kPrivacySection = "differential_privacy";
// Noise beyond this many standard deviations does not occur within a run; sums reserve no range for it.
constexpr double kDeviations = 12;
// Upper bound on one machine's noise in units of the sums, far finer than floating-point rounding could hide.
constexpr double kFinestNoise = 0x1p19;
constexpr double kFinestSkellam = 0x1p13;
constexpr double kMostParameters = 0x1p32;

Spec::Kind read_kind(config::Reader& section) {
  return static_cast<Spec::Kind>(section.choice(
      "kind", {"none", "central", "distributed", "tree", "local"}, 0,
      "Where noise is added.\nnone: there is no noise and no guarantee.\ncentral: the coordinator adds noise "
      "to the sum of the clipped updates.\ndistributed: each client adds a part of the noise to its update "
      "before secure aggregation, so the coordinator sees only a noisy sum.\ntree: the coordinator adds "
      "correlated noise along a tree of rounds (DP-FTRL); it needs no random selection of clients.\nlocal: "
      "each client adds so much noise that its single update satisfies epsilon."));
}

void read_clipping(config::Reader& section, Spec& spec) {
  spec.clipping = static_cast<Clipping>(section.choice(
      "clipping", {"flat", "per_layer", "adaptive"}, 0,
      "How updates are clipped.\nflat: the norm of an update is reduced to clipping_norm.\nper_layer: the "
      "norm of each of the L layers is reduced to clipping_norm / sqrt(L).\nadaptive: as flat, but the norm "
      "follows target_quantile from round to round."));
  spec.clipping_norm = section.number(
      "clipping_norm", spec.clipping_norm, {1e-6, 1e6},
      "Maximum Euclidean norm of an update. With clipping = \"adaptive\", the norm of the first round.");
  spec.target_quantile = section.number("target_quantile", spec.target_quantile, {0.01, 0.99},
                                        "adaptive: fraction of the updates that should not be clipped.");
  spec.clipping_rate = section.number("clipping_rate", spec.clipping_rate, {1e-3, 10},
                                      "adaptive: the norm is multiplied by exp(-clipping_rate * (unclipped "
                                      "fraction - target_quantile)) in every round.");
  spec.count_noise = section.number("count_noise", 0, {0, 1e6},
                                    "adaptive: standard deviation of the noise on the number of unclipped "
                                    "updates. 0: 5 % of a round's clients.");
  section.depends_on("differential_privacy.clipping");
  for (const char* key : {"target_quantile", "clipping_rate", "count_noise"})
    if (spec.clipping != Clipping::kAdaptive && section.has(key))
      section.refuse(key, "has no effect without clipping = \"adaptive\"");
}

// The keys that determine the amount of noise, plus `more`.
std::vector<std::string> noise_keys(std::vector<std::string> more = {}) {
  more.insert(more.end(), {"differential_privacy", "sampling", "data.partition.clients", "run.rounds",
                           "secure_aggregation", "tracks"});
  return more;
}

// Checks how often a client takes part: the noise of a tree and of the clients depends on it.
void check_participation(const RunConfig& run, config::Reader& root) {
  const Spec& spec = run.privacy;
  const double wanted = std::ceil(run.sampling.over_selection * double(run.sampling.clients_per_round));
  const auto clients = static_cast<double>(run.task.data.partition.clients);
  if (spec.kind == Spec::Kind::kTree && spec.clipping == Clipping::kAdaptive)
    root.fail(kPrivacySection,
              "kind = \"tree\" requires a constant clipping norm; use clipping = \"flat\" or \"per_layer\"",
              {"differential_privacy.kind", "differential_privacy.clipping"});
  if (wanted * run.rounds > clients * spec.max_participations)
    root.fail(kPrivacySection,
              number_text(run.rounds) + " rounds of " + number_text(wanted) + " clients are more than " +
                  number_text(clients) + " clients with max_participations = " +
                  number_text(spec.max_participations) + " can fill; raise max_participations",
              {"differential_privacy", "sampling", "data.partition.clients", "run.rounds"});
  if (wanted * (spec.min_separation + 1.0) > clients)
    root.fail(kPrivacySection,
              "with min_separation = " + number_text(spec.min_separation) +
                  ", some rounds have too few clients; lower min_separation or sampling.clients_per_round",
              {"differential_privacy", "sampling", "data.partition.clients"});
}

// Checks that delta is below the probability with which all data of one client may be revealed.
void check_delta(const RunConfig& run, config::Reader& root) {
  const auto clients = static_cast<double>(run.task.data.partition.clients);
  if (run.privacy.delta * clients >= 1)
    root.fail("differential_privacy.delta",
              "is " + number_text(run.privacy.delta) + ", but with data.partition.clients = " +
                  number_text(clients) + " it must be below " + number_text(1 / clients) +
                  "; otherwise a mechanism that reveals all data of one client would count as private",
              {"data.partition.clients", "differential_privacy.delta"});
}

// Draws each client with the same probability in every round, whichever others are connected. The guarantee
// rests on secret draws, so poisson draws in the place of any sampler with this distribution.
void fix_sampling(RunConfig& run) {
  Spec& spec = run.privacy;
  const auto clients = static_cast<double>(run.task.data.partition.clients);
  const auto wanted = std::min(static_cast<double>(run.sampling.clients_per_round), clients);
  spec.sampling_rate = 1;
  spec.expected_clients = wanted;
  if (!run.sampling.traits.independent || spec.kind != Spec::Kind::kCentral) return;
  const double given = run.sampling.traits.chance;
  spec.sampling_rate = given > 0 ? given : wanted / clients;
  spec.expected_clients = spec.sampling_rate * clients;
  run.sampling.make = aggregation::poisson_at(spec.sampling_rate);
  const auto is_own = [&](const auto& kind) { return kind.own && run.sampling.kind == kind.name; };
  if (std::ranges::any_of(aggregation::sampler_kinds(), is_own))
    run.notes.push_back(
        "sampling.kind: with differential_privacy.kind = \"central\", poisson draws in the place of " +
        run.sampling.kind + ", with the same probability and secret random numbers");
  run.sampling.traits = run.sampling.make()->traits();
}

Result<void> calibrate(RunConfig& run) {
  Spec& spec = run.privacy;
  const privacy::Guarantee budget{spec.epsilon, spec.delta};
  const bool limited = std::isfinite(spec.epsilon);
  FEDGE_TRY(beside, plan_statistics(run));
  if (spec.noise_multiplier == 0) {
    spec.noise_multiplier = 1;
    // A client's own updates count only for that client; a run's releases count for all clients.
    const std::uint64_t count = spec.by_clients() ? spec.max_participations : run.rounds;
    const privacy::Release all = spec.release(spec.sampling_rate, count);
    const auto noise = privacy::calibrate_noise(all, budget, spec.accountant, beside);
    if (!noise && !beside.empty())
      return invalid("with statistics_noise = " + number_text(spec.statistics_noise) +
                     ", the statistics leave nothing of epsilon = " + number_text(spec.epsilon) +
                     " to the rounds; raise statistics_noise");
    if (!noise) return noise.error();
    const bool of_one = spec.kind == Spec::Kind::kDistributed && spec.noise == privacy::NoiseKind::kGaussian;
    const double share = of_one ? std::sqrt(static_cast<double>(spec.noisy_clients)) : 1;
    spec.noise_multiplier =
        spec.kind == Spec::Kind::kDistributed ? *noise * share / privacy::kAccountedGrid : *noise;
  }
  spec.most_releases = UINT64_MAX;
  if (limited) {
    const privacy::Release one = spec.release(spec.sampling_rate, 1);
    FEDGE_TRY(releases, privacy::allowed_rounds(one.mechanism, budget, spec.accountant, beside));
    spec.most_releases = releases;
    const std::string noise = "with noise_multiplier = " + number_text(spec.noise_multiplier);
    const std::string budget_text =
        " epsilon = " + number_text(spec.epsilon) + " at delta = " + number_text(spec.delta);
    if (releases == 0) return invalid(noise + ", a single round already exceeds" + budget_text);
    // The bound applies to each client's participation, not to the run.
    if (spec.by_clients()) {
      if (releases < spec.max_participations)
        return invalid(noise + ", only " + std::to_string(releases) + " updates of a client stay within" +
                       budget_text + ", but max_participations is " +
                       std::to_string(spec.max_participations));
      spec.most_releases = UINT64_MAX;
    }
  }
  spec.update_noise = spec.noise_multiplier;
  if (spec.clipping != Clipping::kAdaptive) return {};
  if (spec.count_noise == 0) spec.count_noise = spec.expected_clients / 20;
  auto left = privacy::update_noise_multiplier(spec.noise_multiplier, spec.count_noise);
  if (!left) return left.error().with_prefix("count_noise: ");
  spec.update_noise = *left;
  return {};
}

// True if sums of this number of clipped and noised updates fit into 32-bit words.
bool fits_words(const Spec& spec, double unit, std::size_t updates) {
  const auto count = static_cast<double>(updates);
  double most = count * (spec.clipping_norm * unit + 1);
  if (spec.kind == Spec::Kind::kDistributed)
    most += kDeviations * spec.noise_multiplier * (spec.clipping_norm * unit + 1) *
            std::sqrt(count / static_cast<double>(spec.noisy_clients));
  return most < 0x1p31;
}

// Chooses the finest grid that the noise permits, so that rounding adds almost nothing to the sensitivity.
void choose_grid(RunConfig& run, config::Reader& root) {
  Spec& spec = run.privacy;
  aggregation::FixedPoint& format = run.strategy.fixed_point;
  const bool compact = run.secure.on && run.secure.masking.codec == protocol::Codec::kMasked32;
  const std::size_t updates = most_summed(run);
  const double share =
      spec.kind == Spec::Kind::kDistributed ? std::sqrt(static_cast<double>(spec.noisy_clients)) : 1.0;
  for (int bits = 50; bits >= -64; --bits) {
    format.fraction_bits = bits;
    if (format.max_total_weight().value() < updates) continue;
    spec.weight = compact ? 1 : aggregation::uniform_weight(format, updates);
    const double unit = static_cast<double>(spec.weight) * format.unit();
    // The client computes the same value, bit for bit.
    const double sigma = spec.clipping_norm * unit * (spec.update_noise / share);
    const double finest = spec.noise == privacy::NoiseKind::kSkellam ? kFinestSkellam : kFinestNoise;
    if (sigma > finest || (compact && !fits_words(spec, unit, updates))) continue;
    if (sigma < privacy::kCoarsestNoise ||
        (spec.kind == Spec::Kind::kDistributed && spec.clipping_norm * unit < privacy::kAccountedGrid))
      break;
    return;
  }
  root.fail(kPrivacySection,
            "the fixed-point format of the sums is too coarse for this noise; lower strategy.max_abs" +
                std::string(compact ? ", or use secure_aggregation.kind = \"exact\"" : ""),
            noise_keys({"strategy.max_abs", "strategy.fraction_bits", "strategy.schedule"}));
}

// Checks that every value of a noised update is within the limit for accepted updates.
void check_room(const RunConfig& run, config::Reader& root) {
  const privacy::LocalPrivacySpec local = run.privacy.local();
  const double most = local.clipping_norm * (1 + 2 * kDeviations * local.noise_multiplier);
  if (const double max_abs = run.strategy.fixed_point.max_abs; most > max_abs)
    root.fail(kPrivacySection,
              "a value with this noise may reach " + number_text(std::ceil(most)) +
                  ", but strategy.max_abs is " + number_text(max_abs) +
                  "; raise strategy.max_abs, or lower clipping_norm",
              noise_keys({"strategy.max_abs"}));
}

void tell_clients(RunConfig& run) {
  const Spec& spec = run.privacy;
  privacy::MaskingSpec& masking = run.secure.masking;
  masking.fraction_bits = run.strategy.fixed_point.fraction_bits;
  masking.uniform_weight = masking.max_weight = spec.weight;
  masking.clipping_norm = spec.clipping_norm;
  masking.noise = spec.noise;
  if (spec.kind != Spec::Kind::kDistributed) return;
  masking.max_participations = spec.max_participations;
  masking.noise_multiplier = spec.update_noise / std::sqrt(static_cast<double>(spec.noisy_clients));
}

}  // namespace

privacy::LocalPrivacySpec DifferentialPrivacySpec::local() const {
  privacy::LocalPrivacySpec spec{.clipping_norm = clipping_norm,
                                 .noise_multiplier = noise_multiplier,
                                 .max_participations = max_participations,
                                 .delta = delta};
  spec.fraction_bits = local_fraction_bits(spec);
  return spec;
}

privacy::Release DifferentialPrivacySpec::release(double rate, std::uint64_t count) const {
  if (kind == Kind::kCentral)
    return {privacy::GaussianMechanism{.sampling_rate = rate, .noise_multiplier = noise_multiplier}, count};
  if (kind == Kind::kTree) {
    const auto steps = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
    return {privacy::TreeMechanism{.noise_multiplier = noise_multiplier,
                                   .participation = {steps, max_participations, accounted_separation}},
            1};
  }
  const std::uint64_t times = std::min<std::uint64_t>(count, max_participations);
  if (kind == Kind::kLocal) return {privacy::GaussianMechanism{.noise_multiplier = noise_multiplier}, times};
  const auto clients = static_cast<double>(noisy_clients);
  const privacy::GridSensitivity sensitivity{.l2 = privacy::kAccountedGrid,
                                             .l1 = privacy::kAccountedGrid * std::sqrt(kMostParameters),
                                             .dimension = kMostParameters};
  const double deviation = noise_multiplier * privacy::kAccountedGrid;
  if (noise == privacy::NoiseKind::kSkellam)
    return {privacy::SkellamMechanism{.variance = deviation * deviation, .sensitivity = sensitivity}, times};
  return {privacy::DistributedGaussianMechanism{
              .noise = {.local_sigma = deviation / std::sqrt(clients), .clients = clients},
              .sensitivity = sensitivity},
          times};
}

DifferentialPrivacySpec read_differential_privacy(config::Reader& root) {
  Spec spec;
  config::Reader section = root.section(kPrivacySection);
  spec.kind = read_kind(section);
  read_clipping(section, spec);
  spec.noise_multiplier = section.number("noise_multiplier", 0, {0, 1000},
                                         "Standard deviation of the noise, divided by the sensitivity. 0: "
                                         "computed so that the whole run stays within epsilon.");
  const double epsilon =
      section.number("epsilon", 0, {0, 1e6},
                     "Privacy budget. central, tree: the run ends before the round that would exceed it. "
                     "distributed, local: max_participations rounds must stay within it. 0: no limit.");
  if (epsilon > 0) spec.epsilon = epsilon;
  spec.delta = section.number(
      "delta", spec.delta, {1e-15, 0.1},
      "Probability with which the bound epsilon may fail. It must be below 1 / data.partition.clients.");
  spec.statistics_noise = section.number(
      "statistics_noise", 0, {0, 1e6},
      "central, tree, with data.normalise = \"federated\": standard deviation of the noise on each of the "
      "three "
      "counts of values, divided by their sensitivity. 0: computed so that the counts alone cost a tenth of "
      "epsilon.");
  if ((!spec.on() || spec.by_clients()) && section.has("statistics_noise"))
    section.refuse("statistics_noise", "has no effect without kind = \"central\" or \"tree\"");
  const std::size_t accountant = section.choice("accountant", {"pld", "rdp"}, 0,
                                                "How the privacy loss of the rounds is composed: by privacy "
                                                "loss distributions (pld) or by Renyi divergences (rdp).");
  spec.accountant = accountant == 0 ? privacy::AccountantKind::kPld : privacy::AccountantKind::kRdp;
  spec.noise = static_cast<privacy::NoiseKind>(section.choice(
      "noise", {"gaussian", "skellam"}, 0, "distributed: distribution of the noise of each client."));
  if (spec.kind != Spec::Kind::kDistributed && section.has("noise"))
    section.refuse("noise", "has no effect without kind = \"distributed\"");
  const auto participation = [&](const char* key, std::uint32_t fallback, std::int64_t least,
                                 const char* doc) {
    return static_cast<std::uint32_t>(section.integer(key, fallback, {least, 1'000'000}, doc));
  };
  spec.max_participations =
      participation("max_participations", spec.max_participations, 1,
                    "distributed, tree, local: maximum number of rounds in which a client may take part.");
  spec.min_separation =
      participation("min_separation", spec.min_separation, 0,
                    "tree: minimum number of rounds between two participations of a client.");
  if (!spec.bounds_participation() && section.has("max_participations"))
    section.refuse("max_participations",
                   "has no effect without kind = \"distributed\", \"tree\" or \"local\"");
  if (spec.kind != Spec::Kind::kTree && section.has("min_separation"))
    section.refuse("min_separation", "has no effect without kind = \"tree\"");
  for (const char* key : {"clipping", "clipping_norm", "noise_multiplier", "epsilon", "delta", "accountant"})
    if (!spec.on() && section.has(key)) section.refuse(key, "has no effect with kind = \"none\"");
  if (spec.on() && spec.noise_multiplier == 0 && epsilon == 0)
    section.fail("kind", "requires epsilon, noise_multiplier, or both",
                 {"differential_privacy.epsilon", "differential_privacy.noise_multiplier"});
  root.adopt(section);
  return spec;
}

void resolve_differential_privacy(RunConfig& run, config::Reader& root) {
  Spec& spec = run.privacy;
  if (!spec.on()) return;
  check_delta(run, root);
  if (spec.bounds_participation()) check_participation(run, root);
  fix_sampling(run);
  spec.accounted_separation = run.tracks.policy.disagreements.empty() ? spec.min_separation : 0;
  if (spec.kind == Spec::Kind::kDistributed)
    spec.noisy_clients = std::max(1U, run.secure.masking.rules.honest_survivors());
  if (const auto done = calibrate(run); !done)
    return root.fail(kPrivacySection, done.error().message, noise_keys());
  const auto too_small = [&](const std::string& why) {
    root.fail(kPrivacySection,
              "noise_multiplier = " + number_text(spec.noise_multiplier) + " is too small " + why,
              noise_keys());
  };
  const std::string least = "; use at least " + number_text(privacy::kHidingNoise);
  if (sums_bare(run) && !run.tracks.policy.disagreements.empty())
    too_small("to hide the updates that one track excludes" + least + ", or remove [tracks]");
  if (run.secure.on && spec.kind == Spec::Kind::kLocal && spec.noise_multiplier < privacy::kHidingNoise)
    too_small("for kind = \"local\" with secure_aggregation" + least);
  if (spec.kind == Spec::Kind::kLocal) return check_room(run, root);
  choose_grid(run, root);
  if (run.secure.on) tell_clients(run);
}

}  // namespace fedge::run
