#include "apps/studies/attack_command.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "apps/cli/validators.h"
#include "apps/studies/figure_text.h"
#include "core/platform/thread_pool.h"
#include "core/text.h"

namespace fedge::apps {
namespace {

struct Column {
  std::string name;
  std::vector<lab::AttackResult> results;  // one for each seed
};

SampleSummary interval(const Column& column, const lab::AttackFigure& figure) {
  std::vector<double> values;
  for (const lab::AttackResult& result : column.results)
    values.push_back(result.*figure.value * figure.factor);
  return summarise(values);
}

void print_table(const AttackCommand& command, const std::vector<Column>& columns, std::FILE* out) {
  const lab::AttackOptions& options = command.options;
  std::fprintf(
      out, "%s: %zu nodes, %g of them hostile, in %zu groups of addresses, %zu rounds, %zu seeds from %llu\n",
      to_string(options.attack), options.nodes, options.hostile, options.groups, options.rounds,
      command.seeds, static_cast<unsigned long long>(options.seed));
  std::fprintf(out, "mean ± half of the 95 %% confidence interval over the seeds\n\n");
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.push_back(column.name);
  print_row(out, "", cells);
  for (const lab::AttackFigure& figure : lab::attack_figures()) {
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
  const lab::AttackOptions& options = command.options;
  std::fprintf(out, "{\"attack\":\"%s\",\"nodes\":%zu,\"hostile\":%s,\"groups\":%zu,\"ground_bits\":%u,",
               to_string(options.attack), options.nodes, json_number(options.hostile).c_str(), options.groups,
               options.ground_bits);
  std::fprintf(out, "\"rounds\":%zu,\"seeds\":%zu,\"protections\":[", options.rounds, command.seeds);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::fprintf(out, "%s\n {\"protect\":%s,\"figures\":{", c == 0 ? "" : ",",
                 json_text(columns[c].name).c_str());
    const char* comma = "";
    for (const lab::AttackFigure& figure : lab::attack_figures()) {
      const SampleSummary found = interval(columns[c], figure);
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
  auto* sub = app.add_subcommand("attack");
  sub->add_option("ATTACK", command.attack, "Attack to simulate; see below")
      ->capture_default_str()
      ->check(one_of({"crowd", "eclipse", "poison", "reflect"}));
  sub->add_option("--protect", command.protections, "Comma-separated list of protections; see below")
      ->type_name("NAME,...")
      ->capture_default_str()
      ->take_all();
  const auto add = [&](const char* name, auto& value, const char* help) {
    return sub->add_option(name, value, help)->capture_default_str();
  };
  add("--nodes", command.options.nodes, "Number of nodes, hostile ones included")
      ->check(between(100, 100'000));
  add("--hostile", command.options.hostile, "Fraction of hostile nodes; 0 shows what the protections cost")
      ->type_name("FRACTION")
      ->check(between(0, 0.9));
  add("--groups", command.options.groups,
      "Number of address groups (such as /24 networks) of the hostile nodes")
      ->check(between(1, 100'000));
  add("--ground-bits", command.options.ground_bits,
      "Attack crowd with --protect ids: number of leading id bits that the attacker can choose, by creating "
      "2^BITS keys for each hostile node")
      ->type_name("BITS")
      ->check(between(0, 40));
  add("--replication", command.options.replication, "Number of nodes that store a record")
      ->check(between(1, 20));
  add("--rounds", command.options.rounds, "Rounds of one second; the attack starts in round 5")
      ->check(between(10, 10'000));
  add("--seeds", command.seeds, "Number of simulations of each set of protections, each with its own seed")
      ->check(between(1, 1000));
  add("--seed", command.options.seed, "First seed");
  add("--jobs", command.jobs, "Number of concurrent runs; does not affect the result")
      ->check(between(1, 1024));
  return sub;
}

Result<void> run_attack_command(const AttackCommand& given, std::FILE* out) {
  AttackCommand command = given;
  FEDGE_TRY(attack, lab::attack_of(command.attack));
  command.options.attack = attack;
  std::vector<Column> columns;
  std::vector<lab::AttackOptions> runs;
  for (const std::string& name : command.protections) {
    FEDGE_TRY(defence, lab::defence_of(name));
    lab::AttackOptions options = command.options;
    options.defence = defence;
    FEDGE_TRY_VOID(lab::check_attack(options));
    columns.push_back({name, std::vector<lab::AttackResult>(command.seeds)});
    runs.push_back(options);
  }
  ThreadPool threads(command.jobs);
  threads.for_each(columns.size() * command.seeds, [&](std::size_t task) {
    lab::AttackOptions options = runs[task / command.seeds];
    options.seed += task % command.seeds;
    columns[task / command.seeds].results[task % command.seeds] = lab::run_attack(options);
  });
  command.json ? print_json(command, columns, out) : print_table(command, columns, out);
  return {};
}

}  // namespace fedge::apps
