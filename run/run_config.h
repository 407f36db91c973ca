// RunConfig: a run file, read and validated. The simulator and a federation use the same file; sections of
// other programs ([simulation]) are ignored here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aggregation/spec.h"
#include "aggregation/tracks/policy.h"
#include "core/config/reader.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "learn/spec.h"
#include "protocol/codecs/compression_spec.h"
#include "protocol/status_spec.h"
#include "run/dissemination.h"
#include "run/evaluation.h"
#include "run/privacy/differential_privacy.h"
#include "run/secure_aggregation.h"
#include "run/selection.h"

namespace fedge::run {

// Section [tracks]: the disagreements, and how one that ends is lifted.
struct TracksSpec {
  aggregation::Policy policy;
  // A client that returns to a track has the weight factor j / lifting_rounds in its j-th round there; 0:
  // full weight at once.
  std::uint32_t lifting_rounds = 0;
};

// All settings of a run.
struct RunConfig {
  std::string name;
  RunId id;  // first 8 bytes of the canonical TOML's SHA-256
  std::uint32_t rounds = 1;
  std::uint64_t seed = 0;
  Duration round_deadline{};
  Duration return_within{};                 // wait for clients after a restart of the coordinator
  std::size_t wait_for_clients = 1;         // clients to wait for before the first round
  std::vector<std::size_t> evaluate_ranks;  // ranks of the model's adapters to evaluate
  std::uint32_t evaluate_every = 1;         // rounds; the last round is always evaluated
  std::uint32_t keep_models = 0;            // rounds whose models are kept beside the last one
  std::uint32_t keep_models_every = 1;      // rounds between two of them
  bool tensorboard = false;                 // the results contain an event file for TensorBoard
  std::uint32_t chunk_size = 0;             // bytes
  learn::TaskSpec task;
  aggregation::SamplingSpec sampling;
  aggregation::StrategySpec strategy;
  EvaluationSpec evaluation;
  SelectionSpec selection;
  TracksSpec tracks;
  DisseminationSpec dissemination;
  SecureAggregationSpec secure;
  DifferentialPrivacySpec privacy;
  protocol::CompressionSpec compression;
  protocol::StatusSpec status;
  bool control_variates = false;  // SCAFFOLD
  // Canonical TOML for clients: the sections that define their task, or the whole file if clients aggregate
  // themselves.
  std::string task_text;
  std::string canonical;  // canonical TOML of the whole file
  // One sentence for each key whose value is not used as given: keys without effect because of --set
  // (core/config/former_keys.h), and clients_per_round above the number of clients.
  std::vector<std::string> notes;
  // The document read, for errors found later (config::at_key).
  std::shared_ptr<const config::Document> source;
};

// Number of client numbers that can take part in the run, counted from 0. With data of their own, clients may
// have any numbers below kOpenNumbers, unless a part of the run counts clients: then, and with partitioned
// data, data.partition.clients.
inline constexpr std::size_t kOpenNumbers = 1'000'000;
std::size_t client_numbers(const RunConfig& run);

// Reads and checks further sections of a run file; the run may be only partly read. Errors stay in the reader
// of the whole file. May be called several times.
using ReadMore = std::function<void(const RunConfig&, config::Reader& root)>;

// Reads and checks everything but [simulation], which is ignored or read by `more`. Every error names file,
// line and key (core/config/problems.h).
Result<RunConfig> read_run_config(const config::Document& document, const ReadMore& more = {});
// The canonical TOML of a run file that is right and has no keys of a former kind, without checking that: a
// check can take long. The error names a file that cannot be read.
Result<std::string> canonical_text(const config::Document& document);
// Reads a run as a coordinator describes it: complete, so no referenced file is read. `tokenizer`: the
// content that data.tokenizer.table_hash names; empty without one.
Result<RunConfig> read_described_run(const config::Document& document, std::string tokenizer = {});
// Every key of a run file that the coordinator uses, for the generated reference.
std::vector<config::KeyDoc> describe_run_config();

}  // namespace fedge::run
