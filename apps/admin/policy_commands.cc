#include "apps/admin/policy_commands.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "apps/admin/cells.h"
#include "apps/admin/command_table.h"

namespace fedge::apps {
namespace {

struct PolicyOptions {
  AdminTarget target;
  std::string format = "table";
  std::int64_t run = 0;   // its number; 0: the only one in progress
  std::size_t place = 0;  // lift: number in the list of ls, from 1
  // add: as in a policy file.
  std::string kind;
  std::vector<std::string> clients;
  std::vector<std::string> against;
  std::optional<std::uint32_t> from_round;
  std::optional<std::uint32_t> until_round;
  std::optional<double> withheld;
  bool deep = false;
};

// The path of the disagreements of the run named with --run, or of the only run in progress.
Result<std::string> path_of(const PolicyOptions& options, const AdminClient& client) {
  const auto path = [](std::int64_t run) { return "/runs/" + std::to_string(run) + "/disagreements"; };
  if (options.run != 0) return path(options.run);
  FEDGE_TRY(runs, client.all("/runs?state=open"));
  std::vector<std::int64_t> begun;
  for (const Json& run : runs)
    if (!run["started"].is_null()) begun.push_back(run["run"].get<std::int64_t>());
  if (begun.size() == 1) return path(begun.front());
  if (begun.empty())
    return Error{ErrorCode::kNotFound, "no run is in progress; list runs with: fedge run ls"};
  std::string numbers;
  for (const std::int64_t run : begun) numbers += " " + std::to_string(run);
  return invalid("several runs are in progress; name one with --run; their numbers:" + numbers);
}

std::string shortened(const Json& clients) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < clients.size() && i < kShown; ++i)
    text += (i == 0 ? "" : ",") + clients[i].get<std::string>();
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

std::string number_or(const Json& value, const char* otherwise) {
  return value.is_null() ? otherwise : std::to_string(value.get<std::uint64_t>());
}

Result<std::string> add_disagreement(const PolicyOptions& options, const AdminClient& client) {
  Json body;
  body["kind"] = options.kind;
  body["clients"] = options.clients;
  if (!options.against.empty()) body["against"] = options.against;
  if (options.from_round) body["from_round"] = *options.from_round;
  if (options.until_round) body["until_round"] = *options.until_round;
  if (options.withheld) body["withheld"] = *options.withheld;
  if (options.deep) body["deep"] = true;
  FEDGE_TRY(path, path_of(options, client));
  FEDGE_TRY(added, client.call({"POST", path, std::move(body)}));
  return "disagreement " + std::to_string(added["number"].get<std::uint64_t>()) +
         " starts with the next round, or with its own first round if that is later\n";
}

Result<std::string> lift_disagreement(const PolicyOptions& options, const AdminClient& client) {
  FEDGE_TRY(path, path_of(options, client));
  FEDGE_TRY(lifted, client.call({"DELETE", path + "/" + std::to_string(options.place)}));
  (void)lifted;
  return "disagreement " + std::to_string(options.place) + " ends after the current round\n";
}

Result<std::string> list_disagreements(const PolicyOptions& options, const AdminClient& client) {
  FEDGE_TRY(path, path_of(options, client));
  FEDGE_TRY(all, client.all(path));
  std::string text = row("", {"kind", "clients", "against", "rounds", "past"});
  for (const Json& entry : all)
    text += row(std::to_string(entry["number"].get<std::uint64_t>()),
                {entry["kind"].get<std::string>(), shortened(entry["clients"]), shortened(entry["against"]),
                 number_or(entry["from_round"], "added") + " to " + number_or(entry["until_round"], "end"),
                 entry["past"].is_null() ? "-" : entry["past"].get<std::string>()});
  return text;
}

}  // namespace

struct PolicyCommands::Impl : CommandTable<PolicyOptions> {
  void add_policy_options(CLI::App& add) {
    add.add_option("--kind", options.kind, "Kind of the disagreement; see below")
        ->type_name("KIND")
        ->required()
        ->check(one_of({"full", "partial_data", "inbound", "outbound", "bidirectional"}));
    add.add_option("--clients", options.clients, "Clients that disagree")
        ->type_name("CLIENT,...")
        ->required()
        ->delimiter(',');
    add.add_option("--against", options.against, "Clients that those of --clients disagree with")
        ->type_name("CLIENT,...")
        ->delimiter(',');
    add.add_option("--from", options.from_round, "First round; default: the next round")->type_name("ROUND");
    add.add_option("--until", options.until_round, "Last round; default: no end")->type_name("ROUND");
    add.add_option("--withheld", options.withheld,
                   "partial_data: fraction of its samples that a client does not train on; default: 0.5")
        ->type_name("FRACTION");
    add.add_flag("--deep", options.deep, "Also remove the influence of earlier updates");
  }
};

PolicyCommands::PolicyCommands(CLI::App& tracks) : impl_(std::make_unique<Impl>()) {
  auto* add_command = impl_->add(&tracks, "add", add_disagreement);
  impl_->add_policy_options(*add_command);
  auto* lift = impl_->add(&tracks, "lift", lift_disagreement);
  lift->add_option("NUMBER", impl_->options.place,
                   "The disagreement's number, as listed by 'fedge tracks ls'")
      ->required();
  auto* list = impl_->add(&tracks, "ls", list_disagreements);
  for (auto* command : {add_command, lift, list})
    command->add_option("--run", impl_->options.run, "Number of the run; default: the only run in progress")
        ->check(at_least(1));
}

PolicyCommands::~PolicyCommands() = default;

std::optional<int> PolicyCommands::run(const std::string& program) const { return impl_->run(program); }

}  // namespace fedge::apps
