#include "apps/studies/overlay_command.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "apps/cli/validators.h"
#include "apps/studies/figure_text.h"
#include "core/platform/thread_pool.h"
#include "core/text.h"

namespace fedge::apps {
namespace {

double events_per_second(const lab::OverlayColumn& column) {
  return column.wall_seconds > 0 ? column.events / column.wall_seconds : 0;
}

std::string headline(const lab::ComparisonOptions& options) {
  const lab::OverlayRunOptions& run = options.run;
  const auto warm_up =
      run.warm_up ? static_cast<double>(*run.warm_up) : std::ceil(std::log2(static_cast<double>(run.nodes)));
  return std::to_string(run.nodes) + " nodes, " + std::to_string(run.rounds) + " rounds, " +
         (run.static_tables ? "perfect tables"
                            : "joined over " + std::to_string(run.join_rounds) + " rounds") +
         ", warm-up " + number(warm_up, "%g") + ", " +
         (run.session_rounds > 0 ? "sessions of " + number(run.session_rounds, "%g") + " rounds"
                                 : std::string("no churn")) +
         ", loss " + number(run.overlay.loss, "%g") + ", seeds " + std::to_string(run.seed) + " to " +
         std::to_string(run.seed + options.seeds - 1);
}

void print_table(const OverlayCommand& command, const lab::ComparisonOptions& options,
                 const std::vector<lab::OverlayColumn>& columns, std::FILE* out) {
  std::fprintf(out, "%s\nmean ± half of the 95 %% confidence interval over the seeds\n\n",
               headline(options).c_str());
  const auto row = [&](const std::string& label, auto cell) {
    std::vector<std::string> cells;
    for (const auto& column : columns) cells.push_back(cell(column));
    print_row(out, label, cells);
  };
  row("", [](const auto& column) { return std::string(to_string(column.kind)); });
  const auto& names = lab::figure_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    bool measured = false;
    for (const auto& column : columns) measured = measured || !std::isnan(column.figures[i].mean);
    if (measured)
      row(names[i].label, [&](const auto& column) { return shown(column.figures[i], names[i].decimals); });
  }
  if (options.messages_per_round > 0 || options.run.overlay.maintenance_scale != 1)
    row("periods, times", [](const auto& column) { return with_decimals(column.maintenance_scale, 3); });
  row("events, millions", [](const auto& column) { return with_decimals(column.events * 1e-6, 1); });
  row("events per second and thread, millions",
      [](const auto& column) { return with_decimals(events_per_second(column) * 1e-6, 2); });
  std::fprintf(out, "\nthreads: %zu\n", command.jobs);
}

void print_json(const lab::ComparisonOptions& options, const std::vector<lab::OverlayColumn>& columns,
                std::FILE* out) {
  std::fprintf(out, "{\"nodes\":%zu,\"rounds\":%zu,\"seeds\":%zu,\"overlays\":[", options.run.nodes,
               options.run.rounds, options.seeds);
  const auto& names = lab::figure_names();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const lab::OverlayColumn& column = columns[c];
    std::fprintf(out, "%s\n {\"kind\":%s,\"maintenance_scale\":%s,\"pilots\":%zu,\"figures\":{",
                 c == 0 ? "" : ",", json_text(to_string(column.kind)).c_str(),
                 json_number(column.maintenance_scale).c_str(), column.pilots);
    for (std::size_t i = 0; i < names.size(); ++i)
      std::fprintf(out, "%s\n  %s:{\"mean\":%s,\"half_width\":%s}", i == 0 ? "" : ",",
                   json_text(names[i].key).c_str(), json_number(column.figures[i].mean).c_str(),
                   json_number(column.figures[i].half_width).c_str());
    std::fprintf(out, "},\n  \"events\":%s,\"wall_seconds\":%s,\"events_per_second\":%s,\"trace_hashes\":[",
                 json_number(column.events).c_str(), json_number(column.wall_seconds).c_str(),
                 json_number(events_per_second(column)).c_str());
    for (std::size_t i = 0; i < column.trace_hashes.size(); ++i)
      std::fprintf(out, "%s\"%016llx\"", i == 0 ? "" : ",",
                   static_cast<unsigned long long>(column.trace_hashes[i]));
    std::fprintf(out, "]}");
  }
  std::fprintf(out, "\n]}\n");
}

void add_world(CLI::App& app, OverlayCommand& command) {
  lab::OverlayRunOptions& run = command.comparison.run;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group("Simulated network");
  };
  add("--nodes", run.nodes, "Number of nodes that are up; under churn, on average");
  add("--rounds", run.rounds, "Number of measured rounds, in which lookups take place");
  add("--seeds", command.comparison.seeds, "Number of runs of each overlay, each with its own seed");
  add("--seed", run.seed, "First seed");
  add("--join-rounds", run.join_rounds, "Rounds over which the nodes join, one after the other");
  app.add_option("--warm-up", command.warm_up,
                 "Rounds between the start of the last join and the first lookup; default: log2 of --nodes")
      ->type_name("ROUNDS")
      ->group("Simulated network");
  add("--session-rounds", run.session_rounds, "Mean time that a node stays up; 0: no node leaves")
      ->type_name("ROUNDS");
  add("--availability", run.availability, "Under churn: fraction of the time that a node is up")
      ->type_name("FRACTION");
  add("--graceful", run.graceful, "Fraction of nodes that announce their departure")->type_name("FRACTION");
  add("--lookups-per-round", run.lookups_per_round, "Lookups by random nodes of random published keys");
  add("--keys", run.keys, "Number of keys that random nodes publish");
  add("--value-bytes", run.value_bytes, "Size of the value of each key")->type_name("BYTES");
  add("--agent-warm-rounds", run.agent_warm_rounds,
      "Mean time that the agent on a live node stays warm (able to serve); 0: always")
      ->type_name("ROUNDS");
  add("--agent-cold-rounds", run.agent_cold_rounds, "Mean time that the agent on a live node stays cold")
      ->type_name("ROUNDS");
  add("--loss", run.overlay.loss, "Probability that a message is lost");
  add("--round-ms", command.round_ms, "Length of a round, in milliseconds")->type_name("MS");
  add("--rpc-timeout-ms", command.rpc_timeout_ms, "Timeout of a request, in milliseconds")->type_name("MS");
  app.add_flag("--static", run.static_tables, "Start with perfect routing tables instead of joining")
      ->group("Simulated network");
}

void add_protocols(CLI::App& app, OverlayCommand& command) {
  dht::OverlayOptions& overlay = command.comparison.run.overlay;
  const char* group = "Protocols (periods in rounds)";
  const auto add = [&](const char* name, auto& value, const char* help) {
    app.add_option(name, value, help)->capture_default_str()->group(group);
  };
  add("--replication", overlay.replication, "Number of nodes that store a value");
  add("--republish", overlay.republish,
      "T_rep: period after which publishers publish again; values expire after three periods");
  add("--repair", overlay.repair, "Period after which holders look for nodes that have become responsible");
  add("--maintenance-scale", overlay.maintenance_scale, "Factor for all maintenance periods below");
  add("--messages-per-round", command.comparison.messages_per_round,
      "Choose --maintenance-scale for each overlay by pilot runs, so that maintenance costs this many "
      "messages per node and round; 0: use the given factor");
  add("--successors", overlay.chord.successors, "Chord: length of the successor list");
  add("--stabilize", overlay.chord.stabilize, "Chord: T_s, period of stabilization");
  add("--fix-finger", overlay.chord.fix_finger, "Chord: T_f, period after which one finger is corrected");
  add("--check-predecessor", overlay.chord.check_predecessor, "Chord: period of pings to the predecessor");
  add("--digit-bits", overlay.pastry.digit_bits, "Pastry: b, bits of a digit");
  add("--leaf-set", overlay.pastry.leaf_set, "Pastry: L, size of the leaf set, both sides together");
  add("--neighbourhood", overlay.pastry.neighbourhood,
      "Pastry: M, number of nearby nodes (by delay) that are kept");
  add("--probe-leaves", overlay.pastry.probe_leaves,
      "Pastry: T_s, period of probes to both adjacent leaves and one more");
  add("--fetch-row", overlay.pastry.fetch_row, "Pastry: T_r, period after which a table row is fetched");
  add("--k", overlay.kademlia.k, "Kademlia: size of a bucket and of an answer");
  add("--alpha", overlay.kademlia.alpha, "Kademlia: concurrent requests of a lookup");
  add("--refresh", overlay.kademlia.refresh,
      "Kademlia: T_b, refresh buckets that were unused for this period");
  add("--ping", overlay.kademlia.ping, "Kademlia: period of pings to the oldest contact of a full bucket");
  app.add_flag("--recursive", overlay.recursive, "Chord and Pastry: recursive instead of iterative lookups")
      ->group(group);
  app.add_flag("!--no-cache", overlay.kademlia.cache, "Kademlia: lookups do not cache values on their path")
      ->group(group);
  app.add_flag("--open-interval", command.open_interval, "Chord: fingers in (n, k) instead of (n, k]")
      ->group(group);
}

}  // namespace

CLI::App* add_overlay(CLI::App& app, OverlayCommand& command) {
  auto* sub = app.add_subcommand("overlay");
  sub->add_option("--kind", command.kinds, "Overlay to simulate")
      ->type_name("KIND")
      ->capture_default_str()
      ->check(one_of({"chord", "pastry", "kademlia"}))
      ->take_all();
  sub->add_option("--jobs", command.jobs, "Number of concurrent runs; does not affect the result")
      ->capture_default_str()
      ->check(between(1, 1024));
  add_world(*sub, command);
  add_protocols(*sub, command);
  return sub;
}

Result<void> run_overlay_command(const OverlayCommand& command, std::FILE* out) {
  lab::ComparisonOptions options = command.comparison;
  for (const std::string& name : command.kinds) {
    FEDGE_TRY(kind, dht::overlay_kind(name));
    options.kinds.push_back(kind);
  }
  if (command.warm_up >= 0) options.run.warm_up = static_cast<std::size_t>(command.warm_up);
  if (!(command.round_ms >= 1 && command.round_ms <= 1e6)) return invalid("--round-ms must be 1 to 1000000");
  if (!(command.rpc_timeout_ms >= 1 && command.rpc_timeout_ms <= 1e5))
    return invalid("--rpc-timeout-ms must be 1 to 100000");
  options.run.overlay.round = seconds(command.round_ms * 1e-3);
  options.run.overlay.rpc_timeout = seconds(command.rpc_timeout_ms * 1e-3);
  if (command.open_interval) options.run.overlay.chord.interval = dht::FingerInterval::kOpen;
  FEDGE_TRY_VOID(lab::check_comparison(options));
  ThreadPool threads(command.jobs);
  const auto columns = lab::compare_overlays(options, threads);
  if (command.json)
    print_json(options, columns, out);
  else
    print_table(command, options, columns, out);
  return {};
}

}  // namespace fedge::apps
