#include "apps/commands/policy_commands.h"

#include "server/policy_file.h"

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
  return "disagreement " + std::to_string(place) +
         " holds from the next round on, or from its own first round\n";
}

Result<std::string> lift_disagreement(const PolicyOptions& options) {
  FEDGE_TRY_VOID(server::PolicyFile(options.data_directory).lift(options.place));
  return "disagreement " + std::to_string(options.place) + " ends with this round\n";
}

Result<std::string> list_disagreements(const PolicyOptions& options) {
  FEDGE_TRY(policy, server::PolicyFile(options.data_directory).read());
  std::string text = row("", {"kind", "clients", "against", "rounds", "past"});
  for (std::size_t i = 0; i < policy.disagreements.size(); ++i) {
    const aggregation::Disagreement& entry = policy.disagreements[i];
    const std::string rounds = std::to_string(entry.from_round.value()) + " to " +
                               (entry.until_round ? std::to_string(entry.until_round->value()) : "ever");
    const bool data = entry.kind == aggregation::DisagreementKind::kPartialData;
    const char* past = data ? "-" : entry.deep || policy.strict ? "removed" : "stays";
    text += row(std::to_string(i + 1), {aggregation::name_of(entry.kind), listed(policy, entry.clients),
                                        listed(policy, entry.against), rounds, past});
  }
  return text;
}

}  // namespace fedge::apps
