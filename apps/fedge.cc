// fedge: the command-line tool for everybody: enrolment, strategies, offline aggregation, reference.
#include <CLI/CLI.hpp>

#include "apps/commands/access_commands.h"
#include "apps/commands/aggregate.h"
#include "apps/commands/data_commands.h"
#include "apps/commands/model_commands.h"
#include "apps/commands/policy_commands.h"
#include "apps/commands/privacy/privacy_commands.h"
#include "apps/commands/run_commands.h"
#include "apps/commands/strategies.h"
#include "apps/commands/tracks.h"
#include "apps/common.h"
#include "apps/directory/dht_commands.h"
#include "core/platform/thread_pool.h"
#include "run/run_config.h"
#include "server/coordinator_config.h"
#include "sim/spec.h"

namespace {

constexpr const char* kProgram = "fedge";
constexpr const char* kExamples = R"(
Examples:
  fedge token create --data-dir /var/lib/fedge --address fedge.example.org:7433 --count 3
                                                            three join tokens, one a line
  fedge token create --data-dir /var/lib/fedge --uses 100 --approve
                                                            one for a hundred clients, each to be approved
  fedge run submit fashion.toml --data-dir /var/lib/fedge   begins when its turn comes
  fedge run ls --data-dir /var/lib/fedge                    also: show, log, pause, resume, stop
  fedge client ls --data-dir /var/lib/fedge
  fedge client approve 7 --data-dir /var/lib/fedge
  fedge client revoke 7 --data-dir /var/lib/fedge           cut off within a second
  fedge audit verify --data-dir /var/lib/fedge              that the trail of all this is whole
  fedge strategies                                          what a run file may combine
  fedge strategies krum                                     one of them, with its options
  fedge aggregate --strategy trimmed_mean --set trim=1 --out merged.safetensors a.safetensors b.safetensors c.safetensors
  fedge tracks add --data-dir /var/lib/fedge --kind inbound --clients 0 --against 1
                                                            from the next round on, 0's model without 1
  fedge tracks resolve policy.toml --round 3                who trains whose model under a policy of disagreements
  fedge data partition fashion.toml --out parts             each client's samples as a file, for programs of one's own
  fedge data tokenizer sotu --vocabulary 1024 --out sotu.bpe
                                                            a table of byte pairs for language models
  fedge model generate base.safetensors --prompt "Define dog: "
                                                            what a language model has learned
  fedge model evaluate out/wordnet/model.safetensors --rouge 2
                                                            its figures, also of its adapters' first ranks alone
  fedge privacy epsilon --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5
                                                            what such a training reveals at most; also: noise, rounds
  fedge dht node --listen 0.0.0.0:4222                      a node of the directory, for others to begin with
  fedge dht get run fashion --bootstrap dht.example.org:4222
                                                            who announces that run; also: ls, put, doctor
  fedge reference                                           every key of a run file
  fedge reference coordinator                               every key of a coordinator's configuration
)";

constexpr const char* kPolicyExample = R"(
A policy: for four rounds a's model takes nothing from b.
  clients = ["a", "b", "c"]  # or a number n: they are then called "0" to "n-1"
  [[disagreement]]
  kind = "inbound"           # or full, partial_data, outbound, bidirectional
  clients = ["a"]
  against = ["b"]
  from_round = 1             # the first if left out
  until_round = 4            # for ever if left out
)";

struct Options {
  bool markdown = false;
  std::string page = "run-file";
  std::string part;
  fedge::apps::AggregateOptions aggregate;
  fedge::apps::TracksOptions tracks;
  fedge::apps::PolicyOptions policy;
  fedge::apps::DataOptions data;
  std::string format = "text";
};

std::vector<fedge::config::KeyDoc> keys_of(const std::string& page) {
  if (page == "coordinator") return fedge::server::describe_coordinator_config();
  auto keys = fedge::run::describe_run_config();
  for (auto& key : fedge::sim::describe_simulation()) keys.push_back(std::move(key));
  return keys;
}

int print_reference(const Options& options) {
  const bool run_file = options.page == "run-file";
  if (options.markdown)
    std::printf(
        "# %s\n\nWritten by `fedge reference%s --markdown`.\n\n"
        "| key | default | values | meaning |\n| --- | --- | --- | --- |\n",
        run_file ? "Run file" : "Coordinator configuration", run_file ? "" : " coordinator");
  for (const auto& key : keys_of(options.page)) {
    if (options.markdown)
      std::printf("| `%s` | `%s` | %s | %s |\n", key.path.c_str(), key.fallback.c_str(), key.type.c_str(),
                  key.doc.c_str());
    else
      std::printf("%-38s %s\n%-38s default %s; %s\n", key.path.c_str(), key.doc.c_str(), "",
                  key.fallback.c_str(), key.type.c_str());
  }
  return fedge::apps::kOk;
}

int list_strategies(const Options& options) {
  const std::string text =
      options.markdown ? fedge::apps::strategies_page() : fedge::apps::strategies(options.part);
  if (text.empty())
    return fedge::apps::report_failure(
        kProgram, fedge::invalid("there is no strategy or part named \"" + options.part + "\""));
  std::printf("%s", text.c_str());
  return fedge::apps::kOk;
}

int aggregate(const Options& options) {
  const auto done = fedge::apps::aggregate(options.aggregate);
  if (!done) return fedge::apps::report_failure(kProgram, done.error());
  std::printf("%s\n", done->c_str());
  return fedge::apps::kOk;
}

int resolve_tracks(const Options& options) {
  auto chosen = options.tracks;
  chosen.json = options.format == "json";
  const auto done = fedge::apps::resolve_tracks(chosen, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

CLI::App* add_aggregate(CLI::App& app, fedge::apps::AggregateOptions& options) {
  auto* merge = app.add_subcommand("aggregate", "Merge .safetensors models by any strategy's rule");
  merge->add_option("--strategy", options.strategy, "A strategy or an aggregator by name")->required();
  merge->add_option("--set", options.assignments, "KEY=VALUE of the strategy's parts, as in: --set trim=2")
      ->take_all();
  merge
      ->add_option("--weights", options.weights,
                   "Weight of each file, as in: 3,5,2 [its metadata num_examples, else 1]")
      ->delimiter(',');
  merge->add_option("--global", options.global, "The model that the files were trained from [zeros]");
  merge->add_option("--out", options.out, "The merged model")->required();
  merge->add_option("--threads", options.threads, "Threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  merge->add_option("files", options.files, "Models or updates")->required();
  return merge;
}

struct TracksCommands {
  CLI::App* resolve;
  CLI::App* add;
  CLI::App* lift;
  CLI::App* list;
};

void add_policy_options(CLI::App& add, fedge::apps::PolicyOptions& policy) {
  add.add_option("--kind", policy.kind, "full, partial_data, inbound, outbound or bidirectional")->required();
  add.add_option("--clients", policy.clients, "Who disagrees, as in: a,b")->required()->delimiter(',');
  add.add_option("--against", policy.against, "With whom")->delimiter(',');
  add.add_option("--from", policy.from_round, "First round [the next one]");
  add.add_option("--until", policy.until_round, "Last round [for ever]");
  add.add_option("--withheld", policy.withheld, "partial_data: share of the samples kept out [0.5]");
  add.add_flag("--deep", policy.deep, "What they have contributed before is to be gone too");
}

TracksCommands add_tracks(CLI::App& app, Options& options) {
  auto* tracks = app.add_subcommand("tracks", "Models without some clients, by a policy of disagreements")
                     ->require_subcommand(1);
  auto* resolve = tracks->add_subcommand("resolve", "Who uses and who trains which model in a round");
  resolve->add_option("policy", options.tracks.policy, "A policy file, or a run file with a section [tracks]")
      ->required();
  resolve->add_option("--round", options.tracks.round, "The round, from 1")
      ->required()
      ->check(CLI::Range(1U, UINT32_MAX));
  resolve->add_option("--format", options.format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  resolve->add_flag("--strict", options.tracks.strict,
                    "Train only for tracks that exclude all whom one excludes oneself");
  resolve->footer(kPolicyExample);
  auto* add = tracks->add_subcommand("add", "One more disagreement, while the run goes on");
  add_policy_options(*add, options.policy);
  auto* lift = tracks->add_subcommand("lift", "One less");
  lift->add_option("number", options.policy.place, "As in: fedge tracks ls")->required();
  auto* list = tracks->add_subcommand("ls", "The disagreements of a coordinator's run");
  for (auto* command : {add, lift, list}) {
    command->add_option("--data-dir", options.policy.data_directory, "The coordinator's data directory")
        ->required()
        ->envname("FEDGE_DATA_DIR");
    command->add_option("--run", options.policy.run, "The run's number [the only one in progress]")
        ->check(CLI::Range(std::int64_t{1}, INT64_MAX));
  }
  return {resolve, add, lift, list};
}

struct DataCommands {
  CLI::App* partition;
  CLI::App* list;
  CLI::App* tokenizer;
};

DataCommands add_data(CLI::App& app, fedge::apps::DataOptions& options) {
  auto* data = app.add_subcommand("data", "Who has which samples in a run")->require_subcommand(1);
  auto* partition = data->add_subcommand(
      "partition", "Write each client's training samples as a file: .safetensors, of a text .txt");
  partition->add_option("--out", options.out, "Directory for the files, made if absent")->required();
  partition->add_option("--client", options.client, "Only this one's");
  auto* list = data->add_subcommand("ls", "How many samples each client has, and of which classes");
  for (auto* command : {partition, list}) {
    command->add_option("run", options.run_file, "Run file (TOML)")->required();
    command->add_option("--set", options.assignments, "Override a key of the run file: section.key=value")
        ->take_all();
  }
  auto* tokenizer = data->add_subcommand("tokenizer", "Learn a table of byte pairs (BPE) from a corpus");
  tokenizer->add_option("corpus", options.corpus, "Its name: sotu, wordnet, ...")->required();
  tokenizer->add_option("--directory", options.directory, "Where it lies [where its package puts it]");
  tokenizer->add_option("--vocabulary", options.vocabulary, "Tokens, 256 of which are the bytes")
      ->capture_default_str()
      ->check(CLI::Range(257, 65535));
  tokenizer->add_option("--out", options.out, "The table, to be named by data.tokenizer.file")->required();
  return {partition, list, tokenizer};
}

int say(const fedge::Result<std::string>& done) {
  if (!done) return fedge::apps::report_failure(kProgram, done.error());
  std::printf("%s", done->c_str());
  return fedge::apps::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  fedge::apps::protect_memory();
  Options options;
  options.aggregate.threads = fedge::available_processors();
  CLI::App app("Fedge: federated and edge learning.", kProgram);
  app.footer(kExamples);
  app.set_version_flag("--version", fedge::apps::software(kProgram));
  app.require_subcommand(1);

  const fedge::apps::AccessCommands access(app);
  const fedge::apps::RunCommands runs(app);
  const fedge::apps::ModelCommands models(app);
  const fedge::apps::PrivacyCommands privacy(app);
  const fedge::apps::DhtCommands dht(app);
  auto* reference =
      app.add_subcommand("reference", "Every key of a configuration file, with type, default and meaning");
  reference->add_option("file", options.page, "run-file or coordinator")
      ->capture_default_str()
      ->check(CLI::IsMember({"run-file", "coordinator"}));
  reference->add_flag("--markdown", options.markdown, "As the page in docs/reference/");
  auto* strategies =
      app.add_subcommand("strategies", "Every strategy and every part that a run file may name");
  strategies->add_option("name", options.part, "Only this one");
  strategies->add_flag("--markdown", options.markdown, "All of them, as the page in docs/reference/");
  auto* merge = add_aggregate(app, options.aggregate);
  const TracksCommands tracks = add_tracks(app, options);
  const DataCommands data = add_data(app, options.data);
  fedge::apps::take_one_value_each(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fedge::apps::kOk : fedge::apps::kWrongUsage;
  }
  return fedge::apps::run_safely(kProgram, [&] {
    if (const auto done = access.run()) return say(*done);
    if (const auto done = runs.run()) return say(*done);
    if (const auto done = models.run()) return say(*done);
    if (const auto done = privacy.run()) return say(*done);
    if (const auto code = dht.run(kProgram)) return *code;
    if (*strategies) return list_strategies(options);
    if (*merge) return aggregate(options);
    if (*tracks.resolve) return resolve_tracks(options);
    if (*tracks.add) return say(fedge::apps::add_disagreement(options.policy));
    if (*tracks.lift) return say(fedge::apps::lift_disagreement(options.policy));
    if (*tracks.list) return say(fedge::apps::list_disagreements(options.policy));
    if (*data.partition) return say(fedge::apps::partition_data(options.data));
    if (*data.tokenizer) return say(fedge::apps::learn_tokenizer(options.data));
    if (*data.list) return say(fedge::apps::list_data(options.data));
    return print_reference(options);
  });
}
