// A part of a user's program takes any place for which it declares the traits, and no other.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  const std::string compact = "[model]\nadapter = { rank = 2 }\nbase_dtype = \"int8\"\n";
  CHECK(own_refusal(aggregator("own_unsaid") + compact) == "accepted");
  CHECK(contains(own_refusal(aggregator("own_base") + compact),
                 "model.base_dtype: must be \"float32\", because the aggregator own_base adds to"));
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
  REQUIRE(!drawn->notes.empty());
  CHECK(contains(drawn->notes.back(), "poisson draws in the place of own_draws"));
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

namespace {

// Adds like uniform_mean, but ignores the factors of the updates, and so the clipping.
class Unclipped final : public aggregation::Aggregator {
 public:
  explicit Unclipped(std::unique_ptr<Aggregator> mean) : mean_(std::move(mean)) {}
  Result<void> add(std::span<const aggregation::Update> updates, Parallel& parallel) override {
    std::vector<aggregation::Update> whole(updates.begin(), updates.end());
    for (auto& update : whole) update.factor = 1;
    return mean_->add(whole, parallel);
  }
  std::span<std::int64_t> sums() override { return mean_->sums(); }
  Result<void> prepare(Parallel& parallel) override { return mean_->prepare(parallel); }
  Result<void> read(std::size_t first, std::span<double> out, Parallel& parallel) override {
    return mean_->read(first, out, parallel);
  }
  Coverage covered() const override { return mean_->covered(); }
  void clear() override { mean_->clear(); }

 private:
  std::unique_ptr<Aggregator> mean_;
};

void register_unclipped() {
  static const bool registered = [] {
    aggregation::register_aggregator(
        {.name = "own_unclipped",
         .paper = "",
         .summary = "",
         .traits = {.linear = true, .takes_sums = true, .uniform_weights = true},
         .read = [](config::Reader& section) -> aggregation::AggregatorPart {
           return {.make = [make = aggregation::read_uniform_mean(section).make](const auto& context) {
             return std::make_unique<Unclipped>(make(context));
           }};
         }});
    return true;
  }();
  (void)registered;
}

// What it is shown of its candidates and of their updates; it selects all of them.
class Curious final : public aggregation::Sampler {
 public:
  static inline SampleCount samples;
  static inline double loss = 0;
  aggregation::SamplerTraits traits() const override { return {.blind = true}; }
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    std::vector<aggregation::Selected> all;
    for (const auto& candidate : request.candidates) {
      samples += candidate.samples;
      all.push_back({candidate.client});
    }
    return all;
  }
  void remember(const aggregation::Feedback& feedback) override {
    samples += feedback.samples;
    loss += feedback.loss + feedback.loss_rms + feedback.norm;
  }
};

aggregation::SamplerFactory curious() {
  static const bool registered = [] {
    aggregation::register_sampler(
        {.name = "own_curious", .paper = "", .summary = "", .read = [](config::Reader&) {
           return aggregation::SamplerFactory([] { return std::make_unique<Curious>(); });
         }});
    return true;
  }();
  (void)registered;
  const auto run = read_own(sampler("own_curious"));
  REQUIRE_MESSAGE(run, run.error().message);
  return run->sampling.make;
}

}  // namespace

TEST_CASE("own traits: sums that ignore the clipping of updates are refused") {
  register_unclipped();
  CHECK(
      contains(own_refusal(aggregator("own_unclipped")),
               "the aggregator own_unclipped declares takes_sums and uniform_weights, but its sums() differ "
               "from those of uniform_mean; each update must add uniform_weight() * factor * value"));
}

TEST_CASE("own traits: a blind sampler is not shown what clients report") {
  const auto made = curious()();
  const std::vector<aggregation::Candidate> candidates = {{ClientId(1), SampleCount(9)}};
  CHECK(made->select({.round = RoundNumber(1), .candidates = candidates, .count = 1, .rng = Rng(1)}).size() ==
        1);
  made->remember({.client = ClientId(1),
                  .round = RoundNumber(1),
                  .delivered = true,
                  .samples = SampleCount(9),
                  .norm = 1,
                  .loss = 2,
                  .loss_rms = 3});
  CHECK(Curious::samples == SampleCount(0));
  CHECK(Curious::loss == 0);
}

TEST_CASE("own traits: a sampler that selects more clients than wanted is refused") {
  const auto made = curious()();
  const std::vector<aggregation::Candidate> candidates = {{ClientId(1), {}}, {ClientId(2), {}}};
  CHECK_THROWS_WITH(
      made->select({.round = RoundNumber(1), .candidates = candidates, .count = 1, .rng = Rng(1)}),
      "the sampler own_curious selected 2 clients instead of the 1 wanted; only a sampler that declares "
      "`independent` may select more");
}

}  // namespace fedge::run
