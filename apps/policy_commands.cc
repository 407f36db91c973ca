#include "apps/policy_commands.h"

#include <cstdio>

#include "server/policy_file.h"

namespace fedge::apps {
namespace {

constexpr const char* kWhere = "the command line";

const char* name_of(aggregation::DisagreementKind kind) {
  constexpr const char* kNames[] = {"full", "partial_data", "inbound", "outbound", "bidirectional"};
  return kNames[static_cast<std::size_t>(kind)];
}

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
  FEDGE_TRY(place, server::PolicyFile(options.data_directory).add(table));
  return "disagreement " + std::to_string(place) + " holds from the next round on\n";
}

Result<std::string> lift_disagreement(const PolicyOptions& options) {
  FEDGE_TRY_VOID(server::PolicyFile(options.data_directory).lift(options.place));
  return "disagreement " + std::to_string(options.place) + " ends with this round\n";
}

Result<std::string> list_disagreements(const PolicyOptions& options) {
  FEDGE_TRY(policy, server::PolicyFile(options.data_directory).read());
  char line[512];
  std::snprintf(line, sizeof line, "%4s  %-13s  %-24s  %-24s  %-12s  %s\n", "", "kind", "clients", "against",
                "rounds", "past");
  std::string text = line;
  for (std::size_t i = 0; i < policy.disagreements.size(); ++i) {
    const aggregation::Disagreement& entry = policy.disagreements[i];
    const std::string rounds = std::to_string(entry.from_round.value()) + " to " +
                               (entry.until_round ? std::to_string(entry.until_round->value()) : "ever");
    const bool data = entry.kind == aggregation::DisagreementKind::kPartialData;
    std::snprintf(line, sizeof line, "%4zu  %-13s  %-24s  %-24s  %-12s  %s\n", i + 1, name_of(entry.kind),
                  listed(policy, entry.clients).c_str(), listed(policy, entry.against).c_str(),
                  rounds.c_str(),
                  data         ? "-"
                  : entry.deep ? "removed"
                               : "stays");
    text += line;
  }
  return text;
}

}  // namespace fedge::apps
