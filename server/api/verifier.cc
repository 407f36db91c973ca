#include "server/api/verifier.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/platform/processes.h"
#include "core/text.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostOutput = std::size_t{256} << 20;
constexpr std::size_t kMostOutcomes = 64;  // of different runs
constexpr int kReplayLevels = 8;
constexpr std::size_t kMostReplayReason = 2000;

// The last line that is not empty: the program's error.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  return clean_text(text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin), kMostReplayReason);
}

// Takes over what the program has printed as JSON; false if it is none.
bool take_over(const std::string& text, Verifier::Outcome& outcome) {
  // An error follows the object.
  const std::size_t end = text.find("}\n");
  std::size_t whole = text.rfind("}\n");
  if (end == std::string::npos || whole == std::string::npos) return false;
  const auto json = parse_ordered_json(text.substr(0, whole + 1), kReplayLevels);
  if (json.is_discarded() || !json.is_object()) return false;
  const auto text_of = [](const auto& value) {
    return value.is_string() ? value.template get<std::string>() : std::string();
  };
  for (const auto& round : json.value("rounds", nlohmann::ordered_json::array()))
    outcome.rounds.push_back({round.value("round", std::uint64_t{0}),
                              round.contains("recorded") ? text_of(round["recorded"]) : "",
                              round.contains("replayed") ? text_of(round["replayed"]) : ""});
  if (outcome.rounds.size() > Verifier::kMostRounds)
    outcome.rounds.erase(outcome.rounds.begin(), outcome.rounds.end() - Verifier::kMostRounds);
  outcome.updates = json.value("updates", std::uint64_t{0});
  const auto difference = json.find("difference");
  outcome.equal = difference != json.end() && difference->is_null();
  if (!*outcome.equal) outcome.reason = clean_text(text_of(*difference), kMostReplayReason);
  return true;
}

}  // namespace

Verifier::Verifier(std::filesystem::path data_directory, std::filesystem::path program)
    : data_directory_(std::move(data_directory)), program_(std::move(program)), thread_([this] { work(); }) {}

Verifier::~Verifier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<void> Verifier::start(RunNumber run, std::uint64_t until) {
  std::error_code ignored;
  if (!std::filesystem::exists(program_, ignored))
    return Error{ErrorCode::kUnsupported, program_.string() +
                                              " is missing, which replays runs; install it there, "
                                              "or use 'fedge-sim replay' on another machine"};
  const std::lock_guard lock(mutex_);
  if (wanted_)
    return Error{ErrorCode::kResource, "run " + std::to_string(wanted_->run.value()) +
                                           " is being replayed; wait until that has ended"};
  wanted_ = Outcome{.run = run, .until = until, .started = calendar_now()};
  changed_.notify_all();
  return {};
}

std::optional<Verifier::Outcome> Verifier::outcome(RunNumber run) const {
  const std::lock_guard lock(mutex_);
  if (wanted_ && wanted_->run == run) return wanted_;
  const auto found = std::ranges::find(outcomes_, run, &Outcome::run);
  return found == outcomes_.end() ? std::nullopt : std::optional(*found);
}

void Verifier::work() {
  const auto output = data_directory_ / "replay.json";
  for (std::unique_lock lock(mutex_); !stopping_;) {
    changed_.wait(lock, [this] { return stopping_ || wanted_; });
    if (stopping_) return;
    const Outcome begun = *wanted_;
    lock.unlock();
    Outcome ended = replay(begun, output);
    ended.ended = calendar_now();
    lock.lock();
    std::erase_if(outcomes_, [&](const Outcome& one) { return one.run == ended.run; });
    if (outcomes_.size() >= kMostOutcomes) outcomes_.erase(outcomes_.begin());
    outcomes_.push_back(std::move(ended));
    wanted_.reset();
  }
}

Verifier::Outcome Verifier::replay(Outcome outcome, const std::filesystem::path& output) const {
  ChildProcesses processes;
  const auto stopping = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  const auto started = processes.start(
      "fedge-sim replay",
      {program_.string(), "replay", data_directory_.string(), "--run", std::to_string(outcome.run.value()),
       "--until", std::to_string(outcome.until), "--threads", "1", "--format", "json"},
      output);
  if (!started) {
    outcome.reason = started.error().message;
    return outcome;
  }
  const ChildProcesses::Ended ended = processes.wait(stopping);
  const auto text = read_file(output, kMostOutput);
  std::error_code ignored;
  std::filesystem::remove(output, ignored);
  if (ended.name.empty()) {
    outcome.reason = "the coordinator was stopped meanwhile";
  } else if (!text) {
    outcome.reason = text.error().message;
  } else if (!take_over(*text, outcome)) {
    outcome.reason = last_line(*text);
    if (outcome.reason.empty()) outcome.reason = ended.describe();
  }
  return outcome;
}

}  // namespace fedge::server
