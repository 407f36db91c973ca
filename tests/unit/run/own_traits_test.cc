// A part of a user's program takes any place for which it declares the traits, and no other.
#include <doctest/doctest.h>

#include <string>

#include "core/config/document.h"
#include "run/run_config.h"
#include "tests/support/own_traits.h"
#include "tests/support/text.h"

namespace fedge::run {
namespace {

using fedge::test::contains;

Result<RunConfig> read_own(const std::string& text) {
  test::register_own_traits();
  FEDGE_TRY(document, config::parse_toml(text, "run.toml"));
  return read_run_config(document);
}

std::string own_refusal(const std::string& text) {
  const auto run = read_own(text);
  return run ? "accepted" : run.error().message;
}

std::string aggregator(const std::string& kind) {
  return "[strategy]\naggregator = { kind = \"" + kind + "\" }\n";
}

std::string sampler(const std::string& kind) { return "[sampling]\nkind = \"" + kind + "\"\n"; }

const std::string kCentralNoise = "[differential_privacy]\nkind = \"central\"\nnoise_multiplier = 1.0\n";
const std::string kMasks = "[secure_aggregation]\nkind = \"exact\"\n";

}  // namespace

TEST_CASE("own traits: an aggregator with equal weights takes the place of uniform_mean, and only it does") {
  const std::string scaffold = "[training]\nobjective = { kind = \"scaffold\" }\n";
  CHECK(own_refusal(aggregator("own_unweighted") + kCentralNoise) == "accepted");
  CHECK(own_refusal(aggregator("own_unweighted") + scaffold) == "accepted");
  CHECK(contains(own_refusal(aggregator("own_unsaid") + kCentralNoise),
                 "differential_privacy: the contribution of a client is bounded only if every update has the "
                 "same weight; use the aggregator uniform_mean instead of own_unsaid"));
  CHECK(contains(own_refusal(aggregator("own_unsaid") + scaffold), "requires the aggregator uniform_mean"));
  // Clients mask with one weight for all, or with their samples.
  const auto unweighted = read_own(aggregator("own_unweighted") + kMasks);
  const auto weighted = read_own(aggregator("own_unsaid") + kMasks);
  REQUIRE((unweighted && weighted));
  CHECK(unweighted->secure.masking.uniform_weight == 1024);
  CHECK(weighted->secure.masking.uniform_weight == 0);
  // A rule that ignores samples ignores a weight that rises again.
  const std::string lifting = "[tracks]\nlifting_rounds = 2\n";
  CHECK(own_refusal(aggregator("own_unsaid") + lifting) == "accepted");
  CHECK(contains(own_refusal(aggregator("own_unweighted") + lifting),
                 "which the aggregator own_unweighted ignores; use the aggregator mean"));
}

TEST_CASE(
    "own traits: an aggregator that counts steps or changes the basis is bound as fednova and flora are") {
  const std::string steps = aggregator("own_steps");
  CHECK(own_refusal(steps) == "accepted");
  CHECK(contains(own_refusal(steps + "[training]\noptimizer = { kind = \"adamw\" }\n"),
                 "own_steps requires SGD at a constant learning rate"));
  CHECK(contains(own_refusal(steps + sampler("optimal")),
                 "own_steps needs the local steps of every client that counts"));
  CHECK(contains(own_refusal(steps + "[differential_privacy]\nkind = \"local\"\nnoise_multiplier = 1.0\n"
                                     "max_participations = 100\n"),
                 "own_steps uses local steps as weights, which reveal the size of a client's data"));
  const std::string sparse = "[model]\nadapter = { rank = 2 }\n[compression]\nkind = \"top_k\"\n";
  CHECK(contains(own_refusal(aggregator("own_basis") + sparse),
                 "error_feedback must be false, because the aggregator own_basis computes new factors"));
  CHECK(own_refusal(aggregator("own_basis") + sparse + "error_feedback = false\n") == "accepted");
}

TEST_CASE(
    "own traits: a sampler that goes by nothing that clients report may select for masked and noised sums") {
  for (const std::string& protection : {kMasks, kCentralNoise})
    for (const char* kind : {"own_blind", "uniform", "psp", "aw_psp", "availability"}) {
      CAPTURE(kind);
      CHECK(own_refusal(sampler(kind) + protection) == "accepted");
    }
  CHECK(contains(own_refusal(sampler("own_seeing") + kMasks),
                 "secure_aggregation: sampling.kind = \"own_seeing\" as configured needs to see or to weight "
                 "single updates"));
  CHECK(contains(own_refusal(sampler("own_seeing") + kCentralNoise),
                 "the guarantee does not cover sampling.kind = \"own_seeing\" as configured"));
  // With d above 0, aw_psp goes by the losses that clients report.
  const std::string by_loss = sampler("aw_psp") + "d = 0.5\n";
  CHECK(own_refusal(by_loss) == "accepted");
  CHECK(contains(own_refusal(by_loss + kMasks), "sampling.kind = \"aw_psp\" as configured needs to see"));
  CHECK(contains(own_refusal(by_loss + kCentralNoise), "does not cover sampling.kind = \"aw_psp\""));
}

TEST_CASE("own traits: a sampler that draws independently has the guarantee of poisson, and its secrecy") {
  const std::string population = "[data]\npartition = { clients = 100 }\n";
  const auto drawn = read_own(sampler("own_draws") + population + kCentralNoise);
  REQUIRE_MESSAGE(drawn, drawn.error().message);
  CHECK(drawn->privacy.sampling_rate == doctest::Approx(0.1));
  CHECK(drawn->sampling.traits.chance == drawn->privacy.sampling_rate);
  const auto chosen = read_own(sampler("own_blind") + population + kCentralNoise);
  REQUIRE_MESSAGE(chosen, chosen.error().message);
  CHECK(chosen->privacy.sampling_rate == 1);
  CHECK(contains(
      own_refusal(sampler("own_draws") + population + kCentralNoise + "[dissemination]\nkind = \"swarm\"\n"),
      "but with sampling.kind = \"own_draws\" the guarantee requires that this stays secret"));
  // All clients may be drawn, so a masked sum must have room for all.
  const auto masked = read_own(sampler("own_draws") + population + kMasks);
  const auto ten = read_own(sampler("own_blind") + population + kMasks);
  REQUIRE((masked && ten));
  CHECK(masked->secure.masking.max_weight <= ten->secure.masking.max_weight / 9);
}

TEST_CASE(
    "own traits: a sampler that reads records gets them, and one that counts absence meets no barrier") {
  const auto run = read_own(sampler("own_presence"));
  REQUIRE(run);
  CHECK(run->status.every == seconds(10));
  CHECK(contains(run->task_text, "every_seconds = 10"));
  CHECK(read_own(sampler("own_blind"))->status.every == Duration::zero());
  CHECK(contains(own_refusal(sampler("own_presence") + "[status]\nlabels = \"sets\"\n"),
                 "so remove status.labels"));
  const std::string barrier = "[strategy]\nkind = \"fedbuff\"\nschedule = { barrier = \"bsp\" }\n";
  CHECK(contains(own_refusal(sampler("own_presence") + barrier),
                 "kind = \"own_presence\" would count a client that waits at strategy.schedule.barrier"));
  CHECK(own_refusal(sampler("own_blind") + barrier) == "accepted");
}

}  // namespace fedge::run
