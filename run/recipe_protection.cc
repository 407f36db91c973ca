// The rules of check_recipe() about the protection of updates: secure aggregation, then differential privacy.
#include <string>
#include <utility>
#include <vector>

#include "run/recipe.h"

namespace fedge::run {
namespace {

using Guarantee = DifferentialPrivacySpec::Kind;

bool samples_blindly(const aggregation::SamplerTraits& sampler) {
  return sampler.blind && !sampler.weighs && !sampler.unbiased && sampler.draw == aggregation::Draw::kNever;
}

// Refuses parts that need single updates, or need to know which client sent an update.
void check_secure_parts(const RunConfig& run, config::Reader& root) {
  const auto refuse = [&](const std::string& why, std::vector<std::string> rests_on) {
    rests_on.emplace_back("secure_aggregation.kind");
    root.fail("secure_aggregation", why, std::move(rests_on));
  };
  if (!run.strategy.traits.takes_sums)
    refuse("the aggregator " + run.strategy.aggregator_kind +
               " needs single updates, which the coordinator cannot see; use mean or uniform_mean",
           {"strategy.aggregator"});
  if (run.strategy.schedule.buffered)
    refuse("secure aggregation needs rounds; use strategy.schedule.kind = \"synchronous\"",
           {"strategy.schedule"});
  if (run.control_variates)
    refuse("scaffold needs single updates, which the coordinator cannot see; use another strategy",
           {"training.objective"});
  if (run.compression.format.codec != protocol::Codec::kFloat32 || run.compression.format.zstd)
    refuse("masked updates cannot be compressed; remove [compression], or use kind = \"compact\"",
           {"compression"});
  if (run.dissemination.serverless)
    refuse(
        "with dissemination.kind = \"serverless\" every client sees single updates; use \"direct\" or "
        "\"swarm\"",
        {"dissemination.kind"});
  if (!samples_blindly(run.sampling.traits))
    refuse("sampling.kind = \"" + run.sampling.kind +
               "\" as configured needs to see or to weight single updates, which secure aggregation "
               "prevents; use uniform, psp or poisson",
           {"sampling"});
  if (run.sampling.traits.labels != protocol::LabelReport::kNone)
    refuse(
        "with secure aggregation, clients must not publish the labels of their samples; set sampling.labels "
        "= \"none\"",
        {"sampling"});
  if (!run.privacy.by_clients() && !run.tracks.policy.disagreements.empty())
    refuse(
        "the difference between the sums of two tracks reveals the updates of the clients that one track "
        "excludes; use differential_privacy.kind = \"distributed\" or \"local\", or remove [tracks]",
        {"tracks", "differential_privacy"});
  if (run.tracks.lifting_rounds > 0)
    refuse(
        "tracks.lifting_rounds changes the weights of single updates, which the coordinator cannot see; "
        "remove lifting_rounds",
        {"tracks.lifting_rounds"});
}

// Refuses settings that reveal which clients were drawn: the guarantee with poisson requires secrecy.
void check_hidden_draws(const RunConfig& run, config::Reader& root) {
  const auto refuse = [&](const std::string& what, const char* rests_on) {
    root.fail("differential_privacy",
              what + " reveals which clients were drawn, but with sampling.kind = \"" + run.sampling.kind +
                  "\" the guarantee requires that this stays secret; change this key, or use sampling.kind = "
                  "\"uniform\", whose guarantee does not need it",
              {"sampling.kind", "differential_privacy.kind", rests_on});
  };
  if (run.dissemination.swarm) refuse("dissemination.kind = \"swarm\"", "dissemination.kind");
  if (run.status.via != protocol::StatusSpec::Via::kDirectory) return;
  for (const auto field : {protocol::StatusField::kFreshness, protocol::StatusField::kUtility})
    if (run.status.publish.contains(field))
      refuse("status.publish = \"" + protocol::status_fields()[static_cast<std::size_t>(field)] +
                 "\" in the directory",
             "status");
}

// Refuses parts of a run without a known guarantee.
void check_private_parts(const RunConfig& run, config::Reader& root) {
  const auto refuse = [&](const std::string& why, std::vector<std::string> rests_on) {
    rests_on.emplace_back("differential_privacy.kind");
    root.fail("differential_privacy", why, std::move(rests_on));
  };
  // Any rule may aggregate noised updates. Others need equal weights: clients do not report samples or steps.
  const aggregation::AggregatorTraits& rule = run.strategy.traits;
  if (run.privacy.of_sums() && !(rule.linear && rule.uniform_weights))
    refuse(
        "the contribution of a client is bounded only if every update has the same weight; use the "
        "aggregator uniform_mean instead of " +
            run.strategy.aggregator_kind,
        {"strategy.aggregator"});
  else if (run.privacy.of_sums() && !rule.takes_sums)
    refuse("the noise is added to the sums of the updates, which the aggregator " +
               run.strategy.aggregator_kind + " does not have; use the aggregator uniform_mean",
           {"strategy.aggregator"});
  if (run.strategy.schedule.buffered)
    refuse("the privacy loss is computed per round; use strategy.schedule.kind = \"synchronous\"",
           {"strategy.schedule"});
  if (run.control_variates)
    refuse("scaffold sends its control variate to all clients without noise; use another strategy",
           {"training.objective"});
  if (run.strategy.sums_clients)
    refuse(
        "feddyn adds the noise of all earlier rounds to the model again in every round; use another strategy",
        {"strategy.server_optimizer"});
  if (run.dissemination.serverless)
    refuse(
        "with dissemination.kind = \"serverless\" every client sees every update; use \"direct\" or "
        "\"swarm\"",
        {"dissemination.kind"});
  if (run.strategy.traits.counts_steps)
    refuse(
        run.strategy.aggregator_kind +
            " uses local steps as weights, which reveal the size of a client's data; use another aggregator",
        {"strategy.aggregator"});
  // Published label counts have no noise that is accounted for here.
  const bool by_labels = run.sampling.traits.labels != protocol::LabelReport::kNone;
  if (!samples_blindly(run.sampling.traits) || by_labels)
    refuse("the guarantee does not cover sampling.kind = \"" + run.sampling.kind +
               "\" as configured; use poisson, uniform or psp",
           {"sampling"});
  if (run.sampling.traits.independent && run.sampling.over_selection > 1)
    refuse("with sampling.kind = \"" + run.sampling.kind +
               "\" and differential privacy, sampling.over_selection has no effect; remove over_selection",
           {"sampling"});
  if (run.sampling.traits.independent && run.privacy.kind == Guarantee::kCentral)
    check_hidden_draws(run, root);
  if (run.privacy.kind == Guarantee::kDistributed && !run.secure.on)
    refuse(
        "kind = \"distributed\" requires secure aggregation, because the noise of a single client hides "
        "little; set secure_aggregation.kind",
        {"secure_aggregation.kind"});
  const bool at_clients = run.secure.on || run.privacy.kind == Guarantee::kLocal;
  if (at_clients && run.privacy.clipping != Clipping::kFlat)
    refuse(
        "with kind = \"local\" or secure_aggregation, clients clip their own updates; use clipping = "
        "\"flat\"",
        {"secure_aggregation.kind", "differential_privacy.clipping"});
}

}  // namespace

void check_protection(const RunConfig& run, config::Reader& root) {
  if (run.secure.on) check_secure_parts(run, root);
  if (run.privacy.on()) check_private_parts(run, root);
}

}  // namespace fedge::run
