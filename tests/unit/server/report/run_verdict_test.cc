#include "server/report/run_verdict.h"

#include <doctest/doctest.h>

#include <limits>

using namespace fedge;
using server::RoundMetrics;
using server::RunVerdict;

namespace {

RoundMetrics verdict_round(std::uint64_t round, std::uint64_t completed, double loss = 1.0) {
  RoundMetrics metrics;
  metrics.round = round;
  metrics.clients_selected = 2;
  metrics.clients_completed = completed;
  metrics.test_accuracy = 0.1;
  metrics.test_loss = loss;
  return metrics;
}

Event because(const char* name, const std::string& reason) {
  return Event{Severity::kWarning, name, {}}.with("client", std::int64_t{1}).with("reason", reason);
}

// A round in which both clients' updates are refused.
void add_refused_round(RunVerdict& verdict, std::uint64_t round) {
  for (int client = 0; client < 2; ++client) verdict.add(because("update.refused", "parameter w is nan"));
  verdict.add(verdict_round(round, 0));
}

}  // namespace

TEST_CASE("verdict: a run whose clients contributed and whose loss is finite has not failed") {
  RunVerdict verdict;
  CHECK(verdict.failure().empty());  // no round yet
  verdict.add(verdict_round(1, 0));
  verdict.add(verdict_round(2, 1));
  RoundMetrics unevaluated = verdict_round(3, 1);
  unevaluated.test_accuracy = unevaluated.test_loss = server::kNotMeasured;
  verdict.add(unevaluated);
  CHECK(verdict.failure().empty());
  // A final round without clients is no failure, and neither are two rounds with refused updates.
  verdict.add(verdict_round(4, 0));
  CHECK(verdict.failure().empty());
  verdict.add(verdict_round(5, 1));
  add_refused_round(verdict, 6);
  add_refused_round(verdict, 7);
  CHECK(verdict.failure().empty());
}

TEST_CASE("verdict: a run to which no client ever contributed says why") {
  const auto failure = [](const char* event, const char* reason) {
    RunVerdict verdict;
    for (std::uint64_t round = 1; round <= 2; ++round) {
      if (event != nullptr) verdict.add(because(event, reason));
      verdict.add(verdict_round(round, 0));
    }
    return verdict.failure();
  };
  const std::string none = "the model is untrained: no client contributed an update in any of 2 rounds; ";
  CHECK(failure("update.refused", "parameter w is nan")
            .starts_with(none + "2 updates were refused (the last: "));
  CHECK(failure("update.refused", "parameter w is nan").find("(the last: parameter w is nan); if") !=
        std::string::npos);
  CHECK(failure("client.dropped", "no trainer")
            .starts_with(none + "2 tasks were lost (the last: no trainer); "));
  CHECK(failure("round.not_aggregated", "x")
            .starts_with(none + "no update was aggregated (the last reason: x)"));
  CHECK(failure(nullptr, "").find("run.round_deadline") != std::string::npos);
}

TEST_CASE("verdict: updates that were never aggregated are no contributions") {
  RunVerdict verdict;
  verdict.add(because("round.not_aggregated", "too few"));
  verdict.add(verdict_round(1, 2));
  CHECK(verdict.failure() ==
        "the model is untrained: clients sent updates, but none was aggregated in the only round (the last "
        "reason: too few)");
}

TEST_CASE("verdict: a loss that is not finite at the last evaluation is named with its first round") {
  RunVerdict verdict;
  verdict.add(verdict_round(1, 2));
  for (std::uint64_t round = 2; round <= 3; ++round)
    verdict.add(verdict_round(round, 2, std::numeric_limits<double>::quiet_NaN()));
  CHECK(verdict.failure() ==
        "the model has diverged: its loss has not been finite since round 2; try a lower "
        "training.optimizer.learning_rate");
  verdict.add(verdict_round(4, 2, std::numeric_limits<double>::infinity()));
  CHECK(verdict.failure().find("since round 2;") != std::string::npos);
  verdict.add(verdict_round(5, 2));
  CHECK(verdict.failure().empty());
}

TEST_CASE("verdict: a run all of whose last updates were refused names the round and the reason") {
  RunVerdict verdict;
  verdict.add(verdict_round(1, 2));
  for (std::uint64_t round = 2; round <= 4; ++round) add_refused_round(verdict, round);
  const std::string failure = verdict.failure();
  CHECK(failure.starts_with("the model has not changed since round 2: 6 updates were refused (the last: "));
  CHECK(failure.find("try a lower training.optimizer.learning_rate") != std::string::npos);
  // If some of the clients only dropped out, the run might have recovered.
  RunVerdict partly;
  partly.add(verdict_round(1, 2));
  for (std::uint64_t round = 2; round <= 4; ++round) {
    partly.add(because("update.refused", "x"));
    partly.add(verdict_round(round, 0));
  }
  CHECK(partly.failure().empty());
}

TEST_CASE("verdict: updates that come too late are no refusals of what they hold") {
  RunVerdict verdict;
  verdict.add(verdict_round(1, 2));
  for (std::uint64_t round = 2; round <= 5; ++round) {
    for (const char* code : {"stale", "refused"}) {
      Event late = because("update.refused", "round 1 is closed");
      verdict.add(late.with("code", code));
    }
    verdict.add(verdict_round(round, 0));
  }
  CHECK(verdict.failure().empty());
}

TEST_CASE("verdict: rounds without any client do not hide that all later updates were refused") {
  RunVerdict verdict;
  verdict.add(verdict_round(1, 2));
  for (std::uint64_t round = 2; round <= 9; ++round) verdict.add(verdict_round(round, 0));
  for (std::uint64_t round = 10; round <= 11; ++round) add_refused_round(verdict, round);
  CHECK(verdict.failure().empty());
  add_refused_round(verdict, 12);
  CHECK(verdict.failure().starts_with("the model has not changed since round 2: 6 updates were refused"));
  // An earlier refusal does not count for a later round in which clients only dropped out.
  verdict.add(verdict_round(13, 0));
  CHECK(verdict.failure().empty());
}
