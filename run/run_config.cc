#include "run/run_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "core/config/former_keys.h"
#include "core/crypto/sha256.h"
#include "core/text.h"
#include "protocol/limits.h"
#include "run/file/complete_file.h"
#include "run/recipe.h"

namespace fedge::run {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr const char* kClients = "data.partition.clients";

TracksSpec read_tracks(config::Reader& root, std::size_t clients) {
  TracksSpec tracks;
  config::Reader section = root.section("tracks");
  tracks.policy = aggregation::read_policy(section, clients);
  tracks.lifting_rounds =
      static_cast<std::uint32_t>(section.integer("lifting_rounds", 0, {0, 1'000'000},
                                                 "Rounds over which the weight of a client rises again after "
                                                 "its disagreement ends. 0: full weight at once."));
  root.adopt(section);
  return tracks;
}

// `table` is the table that `root` reads. Sections that imply settings in others are read before those.
RunConfig read_sections(config::Reader& root, config::Table& table, const ReadMore& more) {
  RunConfig run;
  run.privacy = read_differential_privacy(root);
  run.sampling = aggregation::read_sampling(root, run.privacy.implied_sampler());
  run.strategy = aggregation::read_strategy(root, run.privacy.implied_aggregator());
  imply_settings(run, table);
  config::Reader section = root.section("run");
  run.name = section.text("name", "run", "Name of the run in logs and reports.");
  if (const auto fit = check_text(run.name, protocol::kMaxText, "the name"); run.name.empty() || !fit)
    section.fail("name", run.name.empty() ? "is empty; give the run a name"
                                          : "cannot be sent to clients: " + fit.error().message);
  run.rounds = static_cast<std::uint32_t>(
      section.integer("rounds", 10, {1, 1'000'000},
                      "Number of rounds. With a buffered schedule: number of aggregated models."));
  run.seed = static_cast<std::uint64_t>(
      section.integer("seed", 1, {0, kNoLimit}, "Seed of all random draws of the run."));
  run.round_deadline =
      seconds(section.number("round_deadline", 600, {0.001, 1e9},
                             "Seconds after which a round closes with the updates that arrived."));
  run.return_within = seconds(section.number("return_within", 60, {0, 1e6},
                                             "Seconds that clients have to reconnect after a restart of the "
                                             "coordinator, before other clients replace them."));
  const std::int64_t wait = section.integer(
      "wait_for_clients", 0, {0, 10'000'000},
      "Number of clients that must be connected before the first round. 0: data.partition.clients.");
  run.evaluate_every = static_cast<std::uint32_t>(section.integer(
      "evaluate_every", 1, {1, 1'000'000},
      "Rounds between two evaluations of the model, by the coordinator or by clients. The model is always "
      "evaluated after the last round."));
  run.keep_models = static_cast<std::uint32_t>(
      section.integer("keep_models", 0, {0, 100'000},
                      "Number of rounds whose models are kept in the results beside the last one, in "
                      "models/round-000001.safetensors. The models of older rounds are removed."));
  run.keep_models_every = static_cast<std::uint32_t>(
      section.integer("keep_models_every", 1, {1, 1'000'000}, "Rounds between two models that are kept."));
  run.tensorboard = section.boolean(
      "tensorboard", false,
      "Also write the metrics of each round as scalars for TensorBoard, to events.out.tfevents.fedge in the "
      "results.");
  run.chunk_size = static_cast<std::uint32_t>(section.integer(
      "chunk_size", protocol::kDefaultChunkSize, {protocol::kMinChunkSize, protocol::kMaxChunkSize},
      "Size of a chunk of a model or an update in bytes. It must be a multiple of 4."));
  if (run.chunk_size % 4 != 0) section.fail("chunk_size", "must be a multiple of 4");
  run.task = learn::read_task(root);
  imply_rounds(run, table);
  run.selection = read_selection(section, run.task.data);
  const std::vector<std::int64_t> ranks = section.integers(
      "evaluate_ranks", std::vector<std::int64_t>{}, {1, 1024},
      "Ranks to which the adapters are truncated for additional evaluations. If not set: training.ranks.");
  run.evaluate_ranks.assign(ranks.begin(), ranks.end());
  if (!section.has("evaluate_ranks")) run.evaluate_ranks = run.task.training.ranks;
  if (!ranks.empty() &&
      static_cast<std::size_t>(*std::ranges::max_element(ranks)) > run.task.model.adapter.rank)
    section.fail(
        "evaluate_ranks",
        "contains a rank above model.adapter.rank, which is " + std::to_string(run.task.model.adapter.rank),
        {"model.adapter.rank"});
  const std::size_t clients = run.task.data.partition.clients;
  const std::string too_many = "must be at most data.partition.clients, which is " + std::to_string(clients);
  if (wait > 0 && static_cast<std::size_t>(wait) > clients)
    section.fail("wait_for_clients", too_many, {kClients});
  root.adopt(section);
  if (run.sampling.min_available > clients) root.fail("sampling.min_available", too_many, {kClients});
  const bool draws_again = run.sampling.traits.with_replacement;
  if (run.sampling.sized && !draws_again && run.sampling.clients_per_round > clients)
    run.notes.push_back("sampling.clients_per_round: is " + std::to_string(run.sampling.clients_per_round) +
                        ", but the data is partitioned over " + std::to_string(clients) + " clients; " +
                        std::to_string(clients) + " is used");
  if (!draws_again) run.sampling.clients_per_round = std::min(run.sampling.clients_per_round, clients);
  run.tracks = read_tracks(root, clients);
  run.dissemination = read_dissemination(root);
  imply_evaluation(run, table);
  run.evaluation = read_evaluation(root, run.task.data);
  if (run.privacy.on() && run.evaluation.on_clients())
    run.notes.push_back(
        "evaluation.where: only clients without training samples evaluate models, because the guarantee of "
        "differential_privacy would not cover what the others report" +
        std::string(run.selection.on()
                        ? "; without such clients, run.keep_best and run.stop_when have no effect"
                        : ""));
  check_selection(run.selection, run.evaluation, root);
  if (run.selection.on() && run.task.data.validation == 0)
    run.notes.push_back(
        "run.keep_best, run.stop_when: the test samples choose the model, so its result on them is too good; "
        "set "
        "data.validation");
  if (run.task.data.validation > 0 && run.evaluation.on_coordinator())
    run.notes.push_back("data.validation: accuracy and loss are measured on validation samples, " +
                        number_text(run.task.data.validation) +
                        " of the training samples, instead of the test samples");
  run.compression = protocol::read_compression(root);
  run.status = protocol::read_status(root);
  run.control_variates = run.task.training.objective.kind == "scaffold";
  run.secure = read_secure_aggregation(root);
  check_recipe(run, root);
  resolve_secure_aggregation(run, root);
  resolve_differential_privacy(run, root);
  run.wait_for_clients = wait > 0 ? static_cast<std::size_t>(wait) : clients;
  if (more)
    more(run, root);
  else
    root.ignore("simulation");
  return run;
}

// The run that was read, with implied settings, and all problems.
struct ReadFile {
  RunConfig run;
  config::Table resolved;
  std::vector<config::Problem> problems;
};

ReadFile read_complete(const CompleteFile& file, const ReadMore& more) {
  ReadFile read{.resolved = file.whole()};
  config::Reader root(read.resolved, "", file.document.name);
  for (const Error& error : file.errors) root.fail_at(error);
  read.run = read_sections(root, read.resolved, more);
  read.problems = root.finish_problems();
  return read;
}

// Refuses a run file whose stored forms (in results and at the coordinator) would be too long to read again.
Result<void> check_length(const RunConfig& run, const std::string& name) {
  constexpr std::size_t kComment = 256;  // in front of a coordinator's policy, at most
  const std::size_t longest =
      std::max(run.canonical.size(), aggregation::to_toml(run.tracks.policy).size() + kComment);
  if (longest <= config::kMaxDocumentBytes) return {};
  return invalid(name + ": written with one key per line, the run file is " + std::to_string(longest) +
                 " bytes long; at most " + std::to_string(config::kMaxDocumentBytes) + " are allowed");
}

// Builds the strings of the run that others receive, and its id.
Result<void> add_texts(RunConfig& run, const config::Table& resolved, const config::Document& document) {
  config::Table task;
  std::vector<std::string> sections = learn::task_sections();
  sections.emplace_back("compression");
  sections.emplace_back("status");
  sections.emplace_back("evaluation");
  for (const std::string& name : sections)
    if (const auto it = resolved.find(name); it != resolved.end()) task.insert(*it);
  if (run.privacy.kind == DifferentialPrivacySpec::Kind::kLocal)
    task.emplace("local_privacy",
                 config::Value{privacy::to_table(run.privacy.local()), "differential_privacy"});
  if (const std::int64_t whole = run.privacy.statistics_whole; whole > 0)
    task.emplace("statistics",
                 config::Value{config::Table{{"whole", {whole, "data.normalise"}}}, "data.normalise"});
  if (run.secure.on)
    task.emplace("masking", config::Value{privacy::to_table(run.secure.masking), "secure_aggregation"});
  drop_long_table(task);
  run.task_text = config::canonical_toml(run.dissemination.serverless ? document.root : task);
  if (run.task_text.size() > protocol::kMaxTaskText)
    return invalid(document.name +
                   ": the part of the run file that is sent to clients is too long; at most " +
                   std::to_string(protocol::kMaxTaskText) + " bytes are allowed");
  run.canonical = config::canonical_toml(document.root);
  run.source = std::make_shared<const config::Document>(document);
  FEDGE_TRY_VOID(check_length(run, document.name));
  const Digest digest = sha256(run.canonical);
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < 8; ++i) id = (id << 8) | digest[i];
  run.id = RunId(id);
  return {};
}

Result<RunConfig> finish_run(const CompleteFile& file, const ReadMore& more) {
  ReadFile read = read_complete(file, more);
  FEDGE_TRY_VOID(config::to_result(read.problems, file.document.name));
  FEDGE_TRY_VOID(add_texts(read.run, read.resolved, file.document));
  return std::move(read.run);
}

}  // namespace

std::size_t client_numbers(const RunConfig& run) {
  const std::size_t clients = run.task.data.partition.clients;
  const bool counted = run.strategy.planner_traits.numbers_clients || run.sampling.traits.independent ||
                       run.privacy.on() || !run.tracks.policy.disagreements.empty() || run.control_variates ||
                       run.strategy.sums_clients;
  return is_own(run.task.data) && !counted ? std::max(clients, kOpenNumbers) : clients;
}

Result<RunConfig> read_run_config(const config::Document& document, const ReadMore& more) {
  BaseHashes bases;
  auto kept = config::drop_former_keys(document, [&](const config::Document& tried) {
    return read_complete(complete(tried, bases), more).problems;
  });
  auto run = finish_run(complete(kept.document, bases), more);
  if (!run) return run;
  for (std::string& note : run->notes) note = config::at_key(kept.document, invalid(std::move(note))).message;
  run->notes.insert(run->notes.begin(), kept.notes.begin(), kept.notes.end());
  return run;
}

Result<std::string> canonical_text(const config::Document& document) {
  BaseHashes bases;
  const CompleteFile file = complete(document, bases);
  if (!file.errors.empty()) return file.errors.front();
  return config::canonical_toml(file.document.root);
}

Result<RunConfig> read_described_run(const config::Document& document, std::string tokenizer) {
  CompleteFile file{.document = document};
  if (!tokenizer.empty()) file.tokenizer = std::make_shared<const std::string>(std::move(tokenizer));
  return finish_run(file, {});
}

std::vector<config::KeyDoc> describe_run_config() {
  std::vector<config::KeyDoc> docs;
  config::Table table;
  config::Reader root(table, "", "", &docs);
  read_sections(root, table, {});
  // The order of the reference, in which sections are not read.
  constexpr std::array<std::string_view, 13> kOrder = {"run",
                                                       "data",
                                                       "model",
                                                       "training",
                                                       "run.evaluate_ranks",
                                                       "sampling",
                                                       "strategy",
                                                       "tracks",
                                                       "dissemination",
                                                       "compression",
                                                       "status",
                                                       "secure_aggregation",
                                                       "differential_privacy"};
  const auto place = [&](const config::KeyDoc& doc) {
    return std::find_if(kOrder.rbegin(), kOrder.rend(),
                        [&](const std::string_view name) {
                          return doc.path == name || doc.path.starts_with(std::string(name) + ".");
                        })
        .base();
  };
  std::ranges::stable_sort(docs, {}, place);
  return docs;
}

}  // namespace fedge::run
