#include "server/report/run_verdict.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "core/text.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxReason = 300;  // a peer may have written it

std::string reason_of(const Event& event) {
  for (const auto& [key, value] : event.fields)
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && key == "reason")
      return clean_text(*text, kMaxReason);
  return "no reason is known";
}

bool has_field(const Event& event, const std::string& key, const std::string& text) {
  return std::ranges::any_of(event.fields, [&](const auto& field) {
    const auto* value = std::get_if<std::string>(&field.second);
    return field.first == key && value != nullptr && *value == text;
  });
}

// Returns whether an update was refused for its content: a late or repeated one may be valid. The
// coordinator's event names the client. A simulated client reports its own refusal without a name, which
// does not count.
bool is_refusal(const Event& event) {
  return event.name == "update.refused" && !has_field(event, "code", to_string(ErrorCode::kStale)) &&
         !has_field(event, "code", to_string(ErrorCode::kRefused)) &&
         std::ranges::any_of(event.fields, [](const auto& field) { return field.first == "client"; });
}

std::string counted(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

void RunVerdict::add(const Event& event) {
  if (is_refusal(event)) {
    ++now_.refused;
    now_.refusal = reason_of(event);
  } else if (event.name == "client.dropped") {
    ++now_.lost;
    now_.loss = reason_of(event);
  } else if (event.name == "round.not_aggregated") {
    now_.not_aggregated = reason_of(event);
  }
}

void RunVerdict::add(const RoundMetrics& metrics) {
  ++rounds_;
  const Causes causes = std::exchange(now_, {});
  // With several tracks, the other tracks may have been aggregated.
  const bool aggregated = !causes.not_aggregated || !metrics.tracks.empty();
  if (metrics.clients_completed > 0 && aggregated) {
    idle_ = {};
  } else {
    const bool all_refused = metrics.clients_selected > 0 && causes.refused >= metrics.clients_selected;
    idle_.refused_rounds = all_refused ? idle_.refused_rounds + 1 : 0;
    if (idle_.rounds++ == 0) idle_.since = metrics.round;
    idle_.selected += metrics.clients_selected;
    idle_.completed += metrics.clients_completed;
    idle_.causes.refused += causes.refused;
    idle_.causes.lost += causes.lost;
    if (causes.refusal) idle_.causes.refusal = causes.refusal;
    if (causes.loss) idle_.causes.loss = causes.loss;
    if (causes.not_aggregated) idle_.causes.not_aggregated = causes.not_aggregated;
  }
  const ShownResults results = shown_results(metrics);
  if (!results.measured()) return;  // the round was not evaluated
  // The clients' sums have a largest loss, which stands for anything above it.
  const bool by_clients = std::isnan(metrics.test_accuracy) && std::isnan(metrics.test.rmse);
  if (std::isfinite(results.loss) && !(by_clients && results.loss >= learn::EvaluationSums::kMostLoss))
    not_finite_since_.reset();
  else if (!not_finite_since_)
    not_finite_since_ = metrics.round;
}

std::string RunVerdict::failure() const {
  const std::string rounds =
      rounds_ == 1 ? std::string("the only round") : "any of " + std::to_string(rounds_) + " rounds";
  if (rounds_ > 0 && idle_.rounds == rounds_ && idle_.completed > 0 && idle_.causes.not_aggregated)
    return "the model is untrained: clients sent updates, but none was aggregated in " + rounds +
           " (the last reason: " + *idle_.causes.not_aggregated + ")";
  if (rounds_ > 0 && idle_.rounds == rounds_)
    return "the model is untrained: no client contributed an update in " + rounds + "; " + cause();
  if (not_finite_since_)
    return "the model has diverged: its loss has not been finite since round " +
           std::to_string(*not_finite_since_) + "; try a lower training.optimizer.learning_rate";
  if (idle_.refused_rounds >= kRefusedRounds)
    return "the model has not changed since round " + std::to_string(idle_.since) + ": " + cause();
  return {};
}

std::string RunVerdict::cause() const {
  const Causes& causes = idle_.causes;
  if (causes.refused > 0)
    return counted(causes.refused, "update was", "updates were") + " refused (the last: " + *causes.refusal +
           "); if values are too large or not finite, try a lower training.optimizer.learning_rate";
  if (causes.lost > 0)
    return counted(causes.lost, "task was", "tasks were") + " lost (the last: " + *causes.loss +
           "); see the log of that client";
  if (causes.not_aggregated)
    return "no update was aggregated (the last reason: " + *causes.not_aggregated + ")";
  if (idle_.selected > 0) return "no selected client answered in time; try a longer run.round_deadline";
  return "no client was selected; check [sampling] and, in a simulation, simulation.availability";
}

}  // namespace fedge::server
