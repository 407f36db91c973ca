// fedge: the command-line tool for enrolment, runs, models and data in files, and the reference of keys and
// strategies.
#include <CLI/CLI.hpp>

#include "apps/admin/access_commands.h"
#include "apps/admin/backup_commands.h"
#include "apps/admin/key_commands.h"
#include "apps/admin/policy_commands.h"
#include "apps/admin/run_commands.h"
#include "apps/admin/user_commands.h"
#include "apps/cli/command_line.h"
#include "apps/cli/help.h"
#include "apps/cli/validators.h"
#include "apps/commands/aggregate.h"
#include "apps/commands/data_commands.h"
#include "apps/commands/model_commands.h"
#include "apps/commands/privacy/privacy_commands.h"
#include "apps/commands/reference/key_reference.h"
#include "apps/commands/strategies.h"
#include "apps/commands/streams/event_commands.h"
#include "apps/commands/streams/stream_commands.h"
#include "apps/commands/tracks.h"
#include "apps/common.h"
#include "apps/directory/dht_commands.h"
#include "core/platform/thread_pool.h"
#include "server/api/api.h"

namespace {

constexpr const char* kProgram = "fedge";
constexpr const char* kApiPage = "api";
constexpr const char* kOpenApiPage = "openapi";

struct Options {
  bool markdown = false;
  std::string page = "run-file";
  std::string part;
  fedge::apps::AggregateOptions aggregate;
  fedge::apps::TracksOptions tracks;
  fedge::apps::DataOptions data;
  std::string format = "text";
};

int print_reference(const Options& options) {
  if (options.page == kApiPage || options.page == kOpenApiPage) {
    std::printf("%s", (options.page == kApiPage ? fedge::server::api_reference()
                                                : fedge::server::openapi_document() + "\n")
                          .c_str());
    return fedge::apps::kOk;
  }
  std::printf("%s", fedge::apps::key_reference(options.page, options.markdown).c_str());
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
  auto* merge = app.add_subcommand("aggregate");
  merge->add_option("--strategy", options.strategy, "Strategy or aggregator; 'fedge strategies' lists them")
      ->type_name("NAME")
      ->required();
  merge->add_option("--set", options.assignments, "Option of the strategy, for example --set trim=2")
      ->type_name("KEY=VALUE")
      ->check(fedge::apps::assignment())
      ->take_all();
  merge
      ->add_option("--weights", options.weights,
                   "Weight of each file; default: num_examples of the file's metadata, else 1")
      ->type_name("NUMBER,...")
      ->delimiter(',');
  merge
      ->add_option("--global", options.global,
                   "Model from which the files were trained; default: all parameters are zero")
      ->type_name("FILE");
  merge->add_option("--out", options.out, "Output file (.safetensors)")->type_name("FILE")->required();
  merge->add_flag("--force", options.force, "Overwrite the output file if it exists");
  fedge::apps::add_threads(*merge, options.threads, "Number of threads");
  merge->add_option("FILES", options.files, "Model files (.safetensors)")->required();
  return merge;
}

CLI::App* add_resolve(CLI::App& tracks, Options& options) {
  auto* resolve = tracks.add_subcommand("resolve");
  resolve->add_option("FILE", options.tracks.policy, "Policy file, or a run file with a section [tracks]")
      ->required();
  resolve->add_option("--round", options.tracks.round, "Round, counted from 1")
      ->type_name("ROUND")
      ->required()
      ->check(fedge::apps::between(1, UINT32_MAX));
  resolve->add_option("--format", options.format, "Output format")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check(fedge::apps::one_of({"text", "json"}));
  resolve->add_flag("--strict", options.tracks.strict,
                    "A client that excludes other clients trains only tracks that exclude those clients too");
  return resolve;
}

struct DataCommands {
  CLI::App* partition;
  CLI::App* list;
  CLI::App* tokenizer;
};

DataCommands add_data(CLI::App& app, fedge::apps::DataOptions& options) {
  auto* data = app.add_subcommand("data")->require_subcommand(1);
  auto* partition = data->add_subcommand("partition");
  partition->add_option("--out", options.out, "Output directory; created if it does not exist")
      ->type_name("DIR")
      ->required();
  partition->add_option("--client", options.client, "Write only this client's file; default: all clients");
  auto* list = data->add_subcommand("ls");
  for (auto* command : {partition, list}) {
    fedge::apps::add_run_file(*command, options.run_file);
    fedge::apps::add_assignments(*command, options.assignments);
    fedge::apps::add_data(*command, options.data);
  }
  auto* tokenizer = data->add_subcommand("tokenizer");
  tokenizer->add_option("CORPUS", options.corpus, "Name of a text data set, for example sotu or wordnet")
      ->required();
  tokenizer
      ->add_option("--directory", options.directory,
                   "Directory of the corpus; default: where its package or scripts/data.sh installs it")
      ->type_name("DIR");
  tokenizer->add_option("--vocabulary", options.vocabulary, "Number of tokens, 256 of which are single bytes")
      ->capture_default_str()
      ->check(fedge::apps::between(257, 65535));
  tokenizer->add_option("--out", options.out, "Output file")->type_name("FILE")->required();
  return {partition, list, tokenizer};
}

struct LookUpCommands {
  CLI::App* reference;
  CLI::App* strategies;
};

LookUpCommands add_look_up(CLI::App& app, Options& options) {
  auto* reference = app.add_subcommand("reference");
  reference
      ->add_option("NAME", options.page,
                   "run-file, coordinator, screening or power: all keys of that configuration file; a "
                   "section or key of one, for example training or run.rounds; api: the requests of the "
                   "admin API; openapi: the same as an OpenAPI document")
      ->capture_default_str()
      ->check(CLI::Validator(
          [](std::string& name) {
            return name == kApiPage || name == kOpenApiPage ? "" : fedge::apps::unknown_reference(name);
          },
          ""));
  auto* strategies = app.add_subcommand("strategies");
  strategies->add_option("NAME", options.part, "Show only the strategy or part of this name");
  for (auto* command : {reference, strategies})
    command->add_flag("--markdown", options.markdown, "Print the page of docs/reference/");
  return {reference, strategies};
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
  CLI::App app("", kProgram);
  app.set_version_flag("--version", fedge::apps::software(kProgram));
  app.require_subcommand(1);

  const fedge::apps::AccessCommands access(app);
  const fedge::apps::RunCommands runs(app);
  const fedge::apps::BackupCommands backups(app);
  const fedge::apps::KeyCommands keys(app);
  const fedge::apps::UserCommands users(app);
  const fedge::apps::ModelCommands models(app);
  const fedge::apps::PrivacyCommands privacy(app);
  const fedge::apps::DhtCommands dht(app);
  const LookUpCommands look_up = add_look_up(app, options);
  auto* merge = add_aggregate(app, options.aggregate);
  auto* tracks = app.add_subcommand("tracks")->require_subcommand(1);
  const CLI::App* resolve = add_resolve(*tracks, options);
  const fedge::apps::PolicyCommands policy(*tracks);
  const DataCommands data = add_data(app, options.data);
  const fedge::apps::StreamCommands streams(app);
  const fedge::apps::EventCommands events(app);
  if (const auto code = fedge::apps::parse_command_line(app, fedge::apps::fedge_doc(), argc, argv))
    return *code;
  return fedge::apps::run_safely(kProgram, [&] {
    if (const auto code = access.run(kProgram)) return *code;
    if (const auto code = runs.run(kProgram)) return *code;
    if (const auto code = backups.run(kProgram)) return *code;
    if (const auto code = keys.run(kProgram)) return *code;
    if (const auto code = users.run(kProgram)) return *code;
    if (const auto code = policy.run(kProgram)) return *code;
    if (const auto done = models.run()) return say(*done);
    if (const auto done = streams.run()) return say(*done);
    if (const auto done = events.run()) return say(*done);
    if (const auto done = privacy.run()) return say(*done);
    if (const auto code = dht.run(kProgram)) return *code;
    if (*look_up.strategies)
      return say(options.markdown ? fedge::apps::strategies_page() : fedge::apps::strategies(options.part));
    if (*merge) return aggregate(options);
    if (*resolve) return resolve_tracks(options);
    if (*data.partition) return say(fedge::apps::partition_data(options.data));
    if (*data.tokenizer) return say(fedge::apps::learn_tokenizer(options.data));
    if (*data.list) return say(fedge::apps::list_data(options.data));
    return print_reference(options);
  });
}
