// RunConfig: a run file, read and validated. The same file drives the simulator and a federation;
// sections that only another program uses ([simulation]) are passed over here.
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
#include "run/privacy/differential_privacy.h"
#include "run/secure_aggregation.h"

namespace fedge::run {

// Who must not influence whom, and how a disagreement that ends is forgotten.
struct TracksSpec {
  aggregation::Policy policy;
  // A client that comes back to a track counts j / this in its j-th round there; 0: at once as ever.
  std::uint32_t lifting_rounds = 0;
};

// How a model comes to those who train it, and their updates into the next.
struct RunConfig {
  std::string name;
  RunId id;  // first 8 bytes of the canonical text's SHA-256
  std::uint32_t rounds = 1;
  std::uint64_t seed = 0;
  Duration round_deadline{};
  Duration return_within{};                 // after a restart of the coordinator
  std::size_t wait_for_clients = 1;         // before the first round
  std::vector<std::size_t> evaluate_ranks;  // of the model's adapters
  std::uint32_t evaluate_every = 1;         // rounds; the last round is always evaluated
  std::uint32_t chunk_size = 0;             // bytes
  learn::TaskSpec task;
  aggregation::SamplingSpec sampling;
  aggregation::StrategySpec strategy;
  TracksSpec tracks;
  DisseminationSpec dissemination;
  SecureAggregationSpec secure;
  DifferentialPrivacySpec privacy;
  protocol::CompressionSpec compression;
  protocol::StatusSpec status;
  bool control_variates = false;  // SCAFFOLD
  // Canonical TOML of what clients must know: of the sections that say what their work is, or of the whole
  // file where they aggregate themselves.
  std::string task_text;
  std::string canonical;  // canonical TOML of the whole file
  // One sentence for each key whose value is not used as it stands: keys that --set has left without effect
  // (core/config/former_keys.h), and more clients_per_round than clients.
  std::vector<std::string> notes;
  // What was read: for errors that are found later (config::at_key).
  std::shared_ptr<const config::Document> source;
};

// Reads other sections of a run file and judges them beside the run, as far as it was read; errors are left
// in the reader of the whole file. May be called several times.
using ReadMore = std::function<void(const RunConfig&, config::Reader& root)>;

// Reads and checks everything but [simulation], which is passed over, or is read by `more`. Every error names
// file, line and key (core/config/problems.h).
Result<RunConfig> read_run_config(const config::Document& document, const ReadMore& more = {});
// The same of what a coordinator says of its run: complete in itself, so that no file is read that it names.
Result<RunConfig> read_described_run(const config::Document& document);
// Every key a run file may hold for the coordinator, for the generated reference.
std::vector<config::KeyDoc> describe_run_config();

}  // namespace fedge::run
