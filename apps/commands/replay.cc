#include "apps/commands/replay.h"

#include <cmath>
#include <filesystem>
#include <vector>

#include "core/platform/thread_pool.h"
#include "core/text.h"
#include "server/store/sqlite_store.h"
#include "sim/replay/replay.h"

namespace fedge::apps {
namespace {

constexpr std::size_t kShownDigits = 16;

// Opens the store; does not create one.
Result<std::unique_ptr<server::RunStore>> open_store(const std::filesystem::path& directory) {
  const auto path = server::run_store_path(directory);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return Error{ErrorCode::kNotFound,
                 directory.string() + " is not a coordinator's data directory: it contains no runs.db"};
  return server::open_sqlite_store(path);
}

Result<server::RunRecord> find_run(server::RunStore& store, const ReplayCommand& command) {
  if (command.run) return store.run(server::RunNumber(*command.run));
  FEDGE_TRY(runs, store.runs());
  if (runs.empty()) return Error{ErrorCode::kNotFound, command.directory + " contains no run"};
  return runs.back();
}

std::string counted(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Prints one line for each track if the run has tracks.
void print_row(const sim::ReplayedRound& round, std::FILE* out) {
  const auto& made = round.replayed;
  const auto row = [&](const std::string& recorded, const std::string& replayed, const std::string& score) {
    std::fprintf(out, "%5llu  %-16s  %-16s  %8s  %s\n", static_cast<unsigned long long>(made.round),
                 recorded.empty() ? "not yet" : recorded.substr(0, kShownDigits).c_str(),
                 replayed.substr(0, kShownDigits).c_str(), score.c_str(),
                 recorded.empty() ? "-" : (recorded == replayed ? "yes" : "NO"));
  };
  if (made.tracks.empty())
    row(round.recorded ? round.recorded->model_hash : "", made.model_hash,
        server::shown_results(made).score());
  for (std::size_t i = 0; i < made.tracks.size(); ++i) {
    const bool known = round.recorded && i < round.recorded->tracks.size();
    row(known ? round.recorded->tracks[i].model_hash : "", made.tracks[i].model_hash,
        server::ShownResults{.accuracy = made.tracks[i].test_accuracy}.score());
  }
  std::fflush(out);
}

std::string as_json(const sim::ReplayedRound& round) {
  const auto& made = round.replayed;
  const auto* known = round.recorded ? &*round.recorded : nullptr;
  const double accuracy = server::shown_results(made).accuracy;
  std::string tracks;
  for (std::size_t i = 0; i < made.tracks.size(); ++i)
    tracks +=
        std::string(i == 0 ? "" : ",") + "{\"recorded\":" +
        (known != nullptr && i < known->tracks.size() ? json_text(known->tracks[i].model_hash) : "null") +
        ",\"replayed\":" + json_text(made.tracks[i].model_hash) + "}";
  return "{\"round\":" + std::to_string(made.round) +
         ",\"recorded\":" + (known != nullptr ? json_text(known->model_hash) : "null") +
         ",\"replayed\":" + json_text(made.model_hash) +
         ",\"accuracy\":" + (std::isnan(accuracy) ? "null" : number(accuracy, "%.17g")) + ",\"equal\":" +
         (known == nullptr                 ? "null"
          : sim::same_models(made, *known) ? "true"
                                           : "false") +
         ",\"tracks\":[" + tracks + "]}";
}

void print_outcome(const sim::ReplaySummary& summary, std::FILE* out) {
  if (summary.difference) return;
  std::fprintf(out, "%s, %s: all equal\n", counted(summary.rounds, "round").c_str(),
               counted(summary.updates, "update").c_str());
  if (summary.unrecorded > 0)
    std::fprintf(out, "%s not recorded yet, and therefore not compared\n",
                 counted(summary.unrecorded, "round").c_str());
}

}  // namespace

Result<void> replay(const ReplayCommand& command, std::FILE* out) {
  FEDGE_TRY(store, open_store(command.directory));
  FEDGE_TRY(run, find_run(*store, command));
  ThreadPool threads(command.threads);
  std::string rounds;
  if (!command.json)
    std::fprintf(out, "run %lld: %s\n%5s  %-16s  %-16s  %8s  %s\n",
                 static_cast<long long>(run.number.value()), run.name.c_str(), "round", "recorded",
                 "replayed", "result", "equal");
  sim::ReplayOptions options;
  auto data = learn::read_data_directories(command.data);
  if (!data) return data.error().with_prefix("--data: ");
  options.data = std::move(*data);
  if (command.until) options.until = *command.until;
  options.on_round = [&](const sim::ReplayedRound& round) {
    if (command.json)
      rounds += (rounds.empty() ? "\n " : ",\n ") + as_json(round);
    else
      print_row(round, out);
  };
  FEDGE_TRY(summary, sim::replay_run(*store, run, options, threads));
  if (command.json)
    std::fprintf(out,
                 "{\"run\":%lld,\"rounds\":[%s],\n \"updates\":%llu,\"finished\":%s,\"difference\":%s}\n",
                 static_cast<long long>(run.number.value()), rounds.c_str(),
                 static_cast<unsigned long long>(summary.updates), summary.finished ? "true" : "false",
                 summary.difference ? json_text(*summary.difference).c_str() : "null");
  else
    print_outcome(summary, out);
  std::fflush(out);
  if (summary.difference) return Error{ErrorCode::kRefused, *summary.difference};
  return {};
}

}  // namespace fedge::apps
