#include "apps/commands/policy_commands.h"

#include <algorithm>

#include "core/config/document.h"
#include "core/platform/files.h"
#include "server/data_directory.h"
#include "server/policy_file.h"
#include "server/store/sqlite_store.h"

namespace fedge::apps {
namespace {

constexpr const char* kWhere = "the command line";

config::Value texts(const std::vector<std::string>& list) {
  config::Array array;
  for (const std::string& text : list) array.push_back({text, kWhere});
  return {std::move(array), kWhere};
}

std::string listed(const aggregation::Policy& policy, const std::vector<ClientId>& clients) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < clients.size() && i < kShown; ++i)
    text += (i == 0 ? "" : ",") + policy.name(clients[i]);
  if (clients.size() > kShown) text += ",+" + std::to_string(clients.size() - kShown);
  return text.empty() ? "-" : text;
}

std::string row(const std::string& number, const std::vector<std::string>& cells) {
  std::string line(number.size() < 4 ? 4 - number.size() : 0, ' ');
  line += number;
  constexpr std::size_t kWidths[] = {13, 24, 24, 12, 0};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += "  " + cells[i];
    if (cells[i].size() < kWidths[i]) line.append(kWidths[i] - cells[i].size(), ' ');
  }
  return line + "\n";
}

// The policy of the run named with --run, or of the only run in progress.
Result<server::PolicyFile> policy_of(const PolicyOptions& options) {
  FEDGE_TRY_VOID(server::check_coordinator_data(options.data_directory));
  if (options.run != 0) return server::PolicyFile(options.data_directory, server::RunNumber(options.run));
  const auto path = server::run_store_path(options.data_directory);
  std::error_code unreadable;
  const bool exists = std::filesystem::exists(path, unreadable);
  if (unreadable) return system_error("cannot open", path, unreadable.value());
  if (!exists)
    return Error{ErrorCode::kNotFound, "there are no runs in " + options.data_directory + ": " +
                                           path.string() +
                                           " does not exist; is this the coordinator's data directory?"};
  FEDGE_TRY(store, server::open_sqlite_store(path));
  FEDGE_TRY(runs, store->open_runs());
  std::erase_if(runs, [](const server::RunRecord& run) { return run.started == 0; });
  if (runs.size() == 1) return server::PolicyFile(options.data_directory, runs.front().number);
  if (runs.empty())
    return Error{ErrorCode::kNotFound,
                 "no run is in progress in " + options.data_directory + "; list runs with: fedge run ls"};
  std::string numbers;
  for (const server::RunRecord& run : runs) numbers += " " + std::to_string(run.number.value());
  return invalid("several runs are in progress; name one with --run; their numbers:" + numbers);
}

// The disagreements of the run file. All others were added during the run.
Result<std::vector<aggregation::Disagreement>> in_run_file(const PolicyOptions& options,
                                                           const server::PolicyFile& file,
                                                           std::size_t clients) {
  FEDGE_TRY(store, server::open_sqlite_store(server::run_store_path(options.data_directory)));
  FEDGE_TRY(run, store->run(file.run()));
  FEDGE_TRY(document, config::parse_toml(run.document, "run " + std::to_string(run.number.value())));
  config::Reader root(document.root, "", document.name);
  config::Reader section = root.section("tracks");
  return aggregation::read_policy(section, clients).disagreements;
}

// The engine starts an added disagreement in the round after the change (TrackBook::adopt). A deep one also
// removes what was contributed from round 1.
std::string rounds_of(const aggregation::Disagreement& entry, bool added) {
  const bool undated = added && !entry.deep && entry.from_round == RoundNumber(1);
  return (undated ? "added" : std::to_string(entry.from_round.value())) + " to " +
         (entry.until_round ? std::to_string(entry.until_round->value()) : "end");
}

}  // namespace

Result<std::string> add_disagreement(const PolicyOptions& options) {
  config::Table table;
  table.emplace("kind", config::Value{options.kind, kWhere});
  table.emplace("clients", texts(options.clients));
  if (!options.against.empty()) table.emplace("against", texts(options.against));
  if (options.from_round)
    table.emplace("from_round", config::Value{std::int64_t{*options.from_round}, kWhere});
  if (options.until_round)
    table.emplace("until_round", config::Value{std::int64_t{*options.until_round}, kWhere});
  if (options.withheld) table.emplace("withheld", config::Value{*options.withheld, kWhere});
  if (options.deep) table.emplace("deep", config::Value{true, kWhere});
  FEDGE_TRY(file, policy_of(options));
  FEDGE_TRY(place, file.add(table));
  return "disagreement " + std::to_string(place) +
         " starts with the next round, or with its own first round if that is later\n";
}

Result<std::string> lift_disagreement(const PolicyOptions& options) {
  FEDGE_TRY(file, policy_of(options));
  FEDGE_TRY_VOID(file.lift(options.place));
  return "disagreement " + std::to_string(options.place) + " ends after the current round\n";
}

Result<std::string> list_disagreements(const PolicyOptions& options) {
  FEDGE_TRY(file, policy_of(options));
  FEDGE_TRY(policy, file.read());
  FEDGE_TRY(own, in_run_file(options, file, policy.clients));
  std::string text = row("", {"kind", "clients", "against", "rounds", "past"});
  for (std::size_t i = 0; i < policy.disagreements.size(); ++i) {
    const aggregation::Disagreement& entry = policy.disagreements[i];
    const bool added = std::ranges::find(own, entry) == own.end();
    const bool data = entry.kind == aggregation::DisagreementKind::kPartialData;
    const char* past = data ? "-" : entry.deep || policy.strict ? "removed" : "stays";
    text += row(std::to_string(i + 1), {aggregation::name_of(entry.kind), listed(policy, entry.clients),
                                        listed(policy, entry.against), rounds_of(entry, added), past});
  }
  return text;
}

}  // namespace fedge::apps
