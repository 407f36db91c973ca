#include "apps/studies/attack_command.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "apps/studies/figure_text.h"
#include "core/platform/thread_pool.h"
#include "core/text.h"

namespace fedge::apps {
namespace {

constexpr const char* kAttackExamples = R"(
Attacks:
  crowd     Sybils at a key: as near to it as they can get, so that its records are theirs to keep
  eclipse   victims hear of nobody but hostile nodes, all the time, and again when they start anew
  poison    holders give out forged or old records, and fill others with rubbish
  reflect   requests in a victim's name, so that the answers hit it

Protections:
  ids          an id is a hash of its node's public key: nobody chooses one (but for --ground-bits)
  groups       one node of a group of addresses in a bucket and in a search
  paths        three disjoint paths a look-up
  stable       an old contact that answers is not replaced
  all-holders  a look-up asks all that are responsible, not only the first that has something
  tokens       a request is answered with no more than a token until it shows one
  signatures   nodes keep and readers believe signed records alone, the latest of them
  bootstraps   three addresses to begin with instead of one; the first is hostile
  saved        who starts anew remembers whom it knew
  opendht      what OpenDHT does, with Fedge's records: all but ids, groups and paths

Examples:
  fedge-sim attack crowd --jobs 2
  fedge-sim attack crowd --protect ids --protect ids,groups --ground-bits 16
  fedge-sim attack poison --protect signatures --protect signatures,all-holders --format json
)";

struct Column {
  std::string name;
  std::vector<sim::AttackResult> results;  // by seed
};

sim::Interval interval(const Column& column, const sim::AttackFigure& figure) {
  std::vector<double> values;
  for (const sim::AttackResult& result : column.results)
    values.push_back(result.*figure.value * figure.factor);
  return sim::confidence_95(values);
}

void print_table(const AttackCommand& command, const std::vector<Column>& columns, std::FILE* out) {
  const sim::AttackOptions& options = command.options;
  std::fprintf(
      out, "%s: %zu nodes, %g of them hostile, in %zu groups of addresses, %zu rounds, %zu seeds from %llu\n",
      to_string(options.attack), options.nodes, options.hostile, options.groups, options.rounds,
      command.seeds, static_cast<unsigned long long>(options.seed));
  std::fprintf(out, "mean ± half of the 95 %% confidence interval over the seeds\n\n");
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.push_back(column.name);
  print_row(out, "", cells);
  for (const sim::AttackFigure& figure : sim::attack_figures()) {
    cells.clear();
    bool measured = false;
    for (const Column& column : columns) {
      cells.push_back(shown(interval(column, figure), figure.decimals));
      measured = measured || cells.back() != "-";
    }
    if (measured) print_row(out, figure.label, cells);
  }
}

void print_json(const AttackCommand& command, const std::vector<Column>& columns, std::FILE* out) {
  const sim::AttackOptions& options = command.options;
  std::fprintf(out, "{\"attack\":\"%s\",\"nodes\":%zu,\"hostile\":%s,\"groups\":%zu,\"ground_bits\":%u,",
               to_string(options.attack), options.nodes, json_number(options.hostile).c_str(), options.groups,
               options.ground_bits);
  std::fprintf(out, "\"rounds\":%zu,\"seeds\":%zu,\"protections\":[", options.rounds, command.seeds);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::fprintf(out, "%s\n {\"protect\":%s,\"figures\":{", c == 0 ? "" : ",",
                 json_text(columns[c].name).c_str());
    const char* comma = "";
    for (const sim::AttackFigure& figure : sim::attack_figures()) {
      const sim::Interval found = interval(columns[c], figure);
      std::fprintf(out, "%s\n  %s:{\"mean\":%s,\"half_width\":%s}", comma, json_text(figure.key).c_str(),
                   json_number(found.mean).c_str(), json_number(found.half_width).c_str());
      comma = ",";
    }
    std::fprintf(out, "}}");
  }
  std::fprintf(out, "\n]}\n");
}

}  // namespace

CLI::App* add_attack(CLI::App& app, AttackCommand& command) {
  auto* sub = app.add_subcommand(
      "attack",
      "Simulate hostile nodes in a directory without a centre, in virtual time: how many look-ups still "
      "succeed, what damage is done, and what each protection brings and costs");
  sub->add_option("attack", command.attack, "crowd, eclipse, poison or reflect")->capture_default_str();
  sub->add_option("--protect", command.protections,
                  "What stands against it, joined by commas; may be repeated")
      ->capture_default_str()
      ->take_all();
  const auto add = [&](const char* name, auto& value, const char* help) {
    sub->add_option(name, value, help)->capture_default_str();
  };
  add("--nodes", command.options.nodes, "All of them");
  add("--hostile", command.options.hostile, "Share of hostile nodes; 0: what the protections cost");
  add("--groups", command.options.groups, "Groups of addresses, such as /24 networks, that these lie in");
  add("--ground-bits", command.options.ground_bits,
      "crowd with ids: leading bits that the attacker gets right by making 2^bits keys a node");
  add("--replication", command.options.replication, "Nodes that keep a record");
  add("--rounds", command.options.rounds, "Of a second; the attack begins in the fifth");
  add("--seeds", command.seeds, "Runs of each");
  add("--seed", command.options.seed, "The first seed");
  sub->add_option("--jobs", command.jobs, "Runs at a time; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  sub->footer(kAttackExamples);
  return sub;
}

Result<void> run_attack_command(const AttackCommand& given, std::FILE* out) {
  AttackCommand command = given;
  FEDGE_TRY(attack, sim::attack_of(command.attack));
  command.options.attack = attack;
  if (command.seeds < 1 || command.seeds > 1000) return invalid("--seeds must be 1 to 1000");
  std::vector<Column> columns;
  std::vector<sim::AttackOptions> runs;
  for (const std::string& name : command.protections) {
    FEDGE_TRY(defence, sim::defence_of(name));
    sim::AttackOptions options = command.options;
    options.defence = defence;
    FEDGE_TRY_VOID(sim::check_attack(options));
    columns.push_back({name, std::vector<sim::AttackResult>(command.seeds)});
    runs.push_back(options);
  }
  ThreadPool threads(command.jobs);
  threads.for_each(columns.size() * command.seeds, [&](std::size_t task) {
    sim::AttackOptions options = runs[task / command.seeds];
    options.seed += task % command.seeds;
    columns[task / command.seeds].results[task % command.seeds] = sim::run_attack(options);
  });
  command.json ? print_json(command, columns, out) : print_table(command, columns, out);
  return {};
}

}  // namespace fedge::apps
