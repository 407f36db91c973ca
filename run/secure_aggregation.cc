#include "run/secure_aggregation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "aggregation/aggregators/mean.h"
#include "protocol/limits.h"
#include "run/recipe.h"
#include "run/run_config.h"

namespace fedge::run {
namespace {

constexpr const char* kSecureSection = "secure_aggregation";
constexpr std::uint64_t kMaxSamplesPerClient = 100'000'000;  // the same limit as without secure aggregation

// Checks that this number of clients can build a mask graph.
void check_graph(const RunConfig& run, std::size_t updates, config::Reader& root) {
  const privacy::SecureRules& rules = run.secure.masking.rules;
  if (updates < rules.enough(static_cast<std::uint32_t>(updates)))
    return root.fail(kSecureSection,
                     "min_clients is " + std::to_string(rules.min_survivors) + ", but a round has only " +
                         std::to_string(updates) + " clients",
                     {"secure_aggregation", "sampling", "data.partition.clients", "strategy.schedule"});
  if (updates > protocol::kMaxSecureMembers)
    return root.fail(kSecureSection,
                     "at most " + std::to_string(protocol::kMaxSecureMembers) +
                         " clients can take part in a round, but it may have " + std::to_string(updates),
                     {"secure_aggregation", "sampling", "data.partition.clients", "strategy.schedule"});
  const privacy::GraphParameters graph = privacy::choose_graph(rules, static_cast<std::uint32_t>(updates));
  if (graph.degree > protocol::kMaxSecurePeers)
    root.fail(kSecureSection,
              "each of " + std::to_string(updates) + " clients would need " + std::to_string(graph.degree) +
                  " neighbours; at most " + std::to_string(protocol::kMaxSecurePeers) +
                  " are possible; lower corrupt or dropout",
              {"secure_aggregation", "sampling", "data.partition.clients", "strategy.schedule"});
}

}  // namespace

SecureAggregationSpec read_secure_aggregation(config::Reader& root) {
  SecureAggregationSpec spec;
  privacy::MaskingSpec& masking = spec.masking;
  config::Reader section = root.section(kSecureSection);
  const std::vector<std::string> kinds = {"none", "exact", "compact"};
  const std::size_t kind = section.choice(
      "kind", kinds, 0,
      "Whether the coordinator learns only the sum of the updates of a round.\nnone: the coordinator sees "
      "every update.\nexact: secure aggregation with 8 bytes per parameter; the model is the same as "
      "without.\ncompact: secure aggregation with 4 bytes per parameter; values are rounded.");
  spec.on = kind > 0;
  masking.codec = kind == 2 ? protocol::Codec::kMasked32 : protocol::Codec::kMasked64;
  for (const char* key : {"corrupt", "dropout", "min_clients", "complete_below", "max_weight", "patience"})
    if (!spec.on && section.has(key)) section.refuse(key, "has no effect with kind = \"none\"");
  privacy::SecureRules& rules = masking.rules;
  rules.assumptions.corrupt = section.number("corrupt", rules.assumptions.corrupt, {0, 0.33},
                                             "Fraction of a round's clients that the coordinator may "
                                             "control. It determines a sparse mask graph, the minimum number "
                                             "of updates in a sum of a large round, and the noise of each "
                                             "client with differential_privacy.kind = \"distributed\".");
  rules.assumptions.dropout =
      section.number("dropout", rules.assumptions.dropout, {0, 0.6},
                     "Maximum fraction of a round's clients that may drop out without making the round fail, "
                     "if the round has a sparse mask graph. If clients train parts of the model, it also "
                     "determines which parts have too few clients to be summed.");
  rules.complete_below = static_cast<std::uint32_t>(
      section.integer("complete_below", rules.complete_below, {2, protocol::kMaxSecurePeers + 1},
                      "A round with fewer clients uses a complete mask graph (all pairs of clients). A "
                      "larger round uses a sparse mask graph (random neighbours)."));
  rules.min_survivors = static_cast<std::uint32_t>(section.integer(
      "min_clients", rules.min_survivors, {2, protocol::kMaxSecureMembers},
      "Minimum number of updates in a sum. The sum of any parameter over fewer updates is never revealed."));
  masking.max_weight =
      static_cast<std::uint64_t>(section.integer("max_weight", 16384, {1, 1 << 20},
                                                 "compact: maximum number of samples that a client counts "
                                                 "for. Lower values make the sums more precise."));
  if (kind == 1 && section.has("max_weight"))
    section.refuse("max_weight", "has no effect without kind = \"compact\"");
  spec.patience = seconds(
      section.number("patience", 10, {0.1, 3600},
                     "Seconds that clients have for each step of the key exchange and of unmasking."));
  root.adopt(section);
  return spec;
}

bool sums_bare(const RunConfig& run) {
  return run.secure.on &&
         !(run.privacy.by_clients() && run.privacy.noise_multiplier >= privacy::kHidingNoise);
}

void resolve_secure_aggregation(RunConfig& run, config::Reader& root) {
  if (!run.secure.on) return;
  privacy::MaskingSpec& masking = run.secure.masking;
  aggregation::FixedPoint& format = run.strategy.fixed_point;
  const std::size_t updates = std::max<std::size_t>(most_summed(run), 1);
  check_graph(run, updates, root);
  const bool uniform = run.strategy.traits.uniform_weights;
  masking.max_abs =
      run.privacy.of_sums() ? std::min(format.max_abs, run.privacy.clipping_norm) : format.max_abs;
  if (masking.codec == protocol::Codec::kMasked64) {
    const std::uint64_t share = format.max_total_weight().value() / updates;
    if (share == 0)
      return root.fail(kSecureSection,
                       "the sum of " + std::to_string(updates) +
                           " updates would overflow; lower strategy.fraction_bits or strategy.max_abs",
                       {"secure_aggregation", "sampling", "data.partition.clients", "strategy.schedule",
                        "strategy.fraction_bits", "strategy.max_abs"});
    masking.max_weight = std::min(share, kMaxSamplesPerClient);
    if (const SampleCount most = run.strategy.max_weight; most.value() > 0)
      masking.max_weight = std::min(masking.max_weight, most.value());
    masking.uniform_weight = uniform ? aggregation::uniform_weight(format, updates) : 0;
  } else {
    if (uniform) masking.max_weight = masking.uniform_weight = 1;
    const auto bits = privacy::fraction_bits_of(updates, masking.max_weight, masking.max_abs);
    if (!bits)
      return root.fail(kSecureSection,
                       "kind = \"compact\": sums of " + std::to_string(updates) +
                           " updates with weights up to " + std::to_string(masking.max_weight) +
                           " and values up to strategy.max_abs would be too coarse in 32 bits; lower "
                           "strategy.max_abs or max_weight, or use kind = \"exact\"",
                       {"secure_aggregation", "sampling", "data.partition.clients", "strategy.schedule",
                        "strategy.max_abs", "differential_privacy", "strategy.aggregator"});
    format.fraction_bits = *bits;
  }
  masking.fraction_bits = format.fraction_bits;
}

}  // namespace fedge::run
