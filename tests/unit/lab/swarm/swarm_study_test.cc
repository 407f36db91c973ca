// Figures of rounds: the success of attacks with and without protection, and independence of threads.
#include "lab/swarm/swarm_study.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/platform/thread_pool.h"

using namespace fedge;
using namespace fedge::lab;

namespace {

SwarmStudyOptions small_study() {
  SwarmStudyOptions study;
  study.round.warmup.nodes = 30;
  study.round.warmup.chunks = 40;
  study.round.warmup.degree = 6;
  study.round.whole_round = false;
  study.seeds = 4;
  return study;
}

SwarmStudyOptions unprotected() {
  SwarmStudyOptions study = small_study();
  study.round.plain = true;
  study.round.warmup.spray_ratio = 0;
  study.round.warmup.lag = 1;
  study.round.warmup.gating = false;
  return study;
}

SwarmStudyResult run_study(const SwarmStudyOptions& options, std::size_t jobs = 1) {
  REQUIRE(check_swarm_study(options));
  ThreadPool threads(jobs);
  auto result = run_swarm_study(options, threads);
  REQUIRE(result);
  return std::move(*result);
}

double study_figure(const SwarmStudyResult& result, const std::string& key) {
  for (const SwarmFigure& each : result.figures)
    if (each.key == key) return each.over_seeds.mean;
  FAIL("no figure " << key);
  return 0;
}

}  // namespace

TEST_CASE("swarm study: without protection the attacks name nearly every sender's update") {
  const SwarmStudyResult result = run_study(unprotected());
  for (const char* attack : {"sequence", "count", "cluster"}) {
    CAPTURE(attack);
    CHECK(study_figure(result, std::string("asr_") + attack + "_max_percent") == 100);
    CHECK(study_figure(result, std::string("asr_") + attack + "_mean_percent") > 95);
  }
}

TEST_CASE("swarm study: behind a gate for everybody's chunks no attack of the paper beats guessing") {
  const SwarmStudyResult result = run_study(small_study());
  for (const char* attack : {"sequence", "count", "cluster"})
    CHECK(study_figure(result, std::string("asr_") + attack + "_mean_percent") < 100.0 / 6);
  CHECK(study_figure(result, "guess_percent") == doctest::Approx(100.0 / 6));
}

TEST_CASE("swarm study: neighbours tell by what they are never asked for, unless the round is blended") {
  for (const bool relayed : {false, true}) {
    SwarmStudyOptions study = small_study();
    study.round.warmup.chunks = 200;  // so that clients request chunks of every update
    study.round.warmup.relayed = relayed;
    const SwarmStudyResult published = run_study(study);
    study.round.warmup.blended = true;
    const SwarmStudyResult blended = run_study(study);
    CHECK(study_figure(published, "asr_elimination_mean_percent") > 80);
    CHECK(study_figure(blended, "asr_elimination_mean_percent") < 20);
    CHECK(blended.failed_open.empty());  // the audit reports nothing
    CHECK(study_figure(blended, "warmup_slots") < 1.2 * study_figure(published, "warmup_slots"));
  }
}

TEST_CASE("swarm study: after the warm-up a plain swarm gives away what the warm-up hid") {
  SwarmStudyOptions study = small_study();
  study.round.watch = 5;
  CHECK(study_figure(run_study(study), "asr_count_mean_percent") > 80);
}

TEST_CASE("swarm study: what the gate lets out is an owner's about once in as many chunks as it held") {
  SwarmStudyOptions study = small_study();
  study.round.warmup.k_mode = swarm::KMode::kSplit;
  study.round.warmup.threshold = 0.2;  // a gate of 8; on average, 8 chunks are sprayed to each client
  study.round.warmup.scheduler = "flooding";
  study.round.warmup.non_owner_first = false;
  study.seeds = 20;
  const double rate = study_figure(run_study(study), "asr_sequence_mean_percent");
  CHECK(rate < 100.0 / 8);  // kappa / k
  CHECK(rate > 1);
}

TEST_CASE("swarm study: one thread and three come to the same logs and figures") {
  SwarmStudyOptions study = small_study();
  study.coalitions = {3};
  study.round.whole_round = true;
  study.round.drop = 0.1;
  const SwarmStudyResult one = run_study(study, 1);
  const SwarmStudyResult three = run_study(study, 3);
  CHECK(one.log_hashes == three.log_hashes);
  CHECK(one.log_hashes[0] != one.log_hashes[1]);
  REQUIRE(one.figures.size() == three.figures.size());
  for (std::size_t i = 0; i < one.figures.size(); ++i) {
    CHECK(one.figures[i].key == three.figures[i].key);
    const double mean = one.figures[i].over_seeds.mean;
    CHECK((std::isnan(mean) || mean == three.figures[i].over_seeds.mean));
  }
}

TEST_CASE("swarm study: a coalition of observers is right at least as often as each of them") {
  SwarmStudyOptions study = unprotected();
  study.coalitions = {2, 8};
  const SwarmStudyResult result = run_study(study);
  CHECK(study_figure(result, "coalition_8_sequence_any_percent") >=
        study_figure(result, "coalition_8_sequence_mean_percent"));
  CHECK(study_figure(result, "coalition_2_sequence_any_percent") > 95);
}

TEST_CASE("swarm study: options out of bounds are named") {
  const auto refusal = [](auto change) {
    SwarmStudyOptions study = small_study();
    change(study);
    const auto checked = check_swarm_study(study);
    return checked ? std::string() : checked.error().message;
  };
  CHECK(refusal([](auto& s) { s.seeds = 0; }).find("seeds must be") == 0);
  CHECK(refusal([](auto& s) { s.attacks = {"luck"}; }).find("not \"luck\"") != std::string::npos);
  CHECK(refusal([](auto& s) { s.coalitions = {30}; }).find("coalition must be 1 to 29") == 0);
  CHECK(refusal([](auto& s) { s.early = 0; }).find("early must be") == 0);
  CHECK(refusal([](auto& s) { s.round.warmup.nodes = 1; }).find("nodes must be") == 0);
}
