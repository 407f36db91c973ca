// The frames between a client daemon and the user's trainer program, over the program's standard input and
// output. docs/reference/trainer-protocol.md is the reference for other implementers. A frame is the
// header's length (4 bytes), the payload's length (8 bytes), both little-endian, the header (JSON) and the
// payload. Pure: no process, no clock. Sizes from the program are checked before memory is allocated. Every
// error says what the program did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/coverage.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"

namespace fedge::client {

inline constexpr std::uint32_t kTrainerProtocol = 1;
inline constexpr std::size_t kTrainerPrefix = 12;                        // the two lengths
inline constexpr std::size_t kMaxTrainerHeader = std::size_t{64} << 10;  // from the program
inline constexpr std::size_t kMaxDaemonHeader = std::size_t{16} << 20;   // from the daemon: many ranges
inline constexpr std::size_t kMaxTrainerDepth = 32;                      // of nested JSON
inline constexpr std::size_t kMaxTrainerReason = 300;                    // bytes of an error's reason

// --- from the program ---
struct TrainerReady {
  SampleCount samples;               // available for training, at least 1
  std::optional<double> capability;  // fraction of a model that it can train, in (0, 1]
  SampleCount evaluates{};           // available for evaluation; 0: it evaluates no models
};
// A heartbeat; both values may be absent.
struct TrainerProgress {
  std::optional<double> fraction;  // of the task, in [0, 1]
  std::optional<double> loss;
};
// The trained model is the frame's payload.
struct TrainerUpdate {
  std::uint64_t task = 0;
  SampleCount samples;
  std::uint64_t steps = 0;
  double train_loss = 0;
  double rms_loss = 0;  // train_loss if the program did not say
};
// Predictions for some of the samples to evaluate, which are the frame's payload.
struct TrainerPredictions {
  std::uint64_t task = 0;
};
// All predictions of a task have been sent.
struct TrainerEvaluation {
  std::uint64_t task = 0;
  SampleCount samples;
};
struct TrainerFailure {
  std::optional<std::uint64_t> task;  // absent: the current task
  std::string reason;                 // clean text, at most kMaxTrainerReason bytes
};
using TrainerMessage = std::variant<TrainerReady, TrainerProgress, TrainerUpdate, TrainerPredictions,
                                    TrainerEvaluation, TrainerFailure>;

// Parses a header; ignores unknown keys. kInvalid: not JSON, nested too deeply, a duplicate key, an unknown
// type, a field that is missing or out of range.
Result<TrainerMessage> parse_trainer_header(std::string_view header);

// The largest payload of an update for a model of this size: its values plus 5 % and 64 KiB for names and
// metadata.
constexpr std::size_t max_update_payload(std::size_t model_bytes) {
  return model_bytes + model_bytes / 20 + (std::size_t{64} << 10);
}

inline constexpr std::size_t kMaxPredictionsPayload = std::size_t{16} << 20;

// The largest payload of each type of message that has one; 0: none may be sent.
struct PayloadLimits {
  std::size_t update = 0;
  std::size_t predictions = 0;
  std::size_t first_model = 0;  // of a ready
};

struct TrainerFrame {
  TrainerMessage message;
  std::vector<std::byte> payload;
};

// Assembles frames from a stream, one at a time. Unusable after an error.
class TrainerFrameReader {
 public:
  explicit TrainerFrameReader(const PayloadLimits& limits) : limits_(limits), buffer_(kTrainerPrefix) {}

  // Where to put the next bytes: never empty, never more than the current frame lacks.
  std::span<std::byte> room() { return std::span(buffer_).subspan(filled_); }
  // Call after putting `bytes` bytes there; returns a frame if they complete it.
  Result<std::optional<TrainerFrame>> filled(std::size_t bytes);
  // Whether a frame is incomplete.
  bool inside() const { return part_ != Part::kPrefix || filled_ > 0; }

 private:
  enum class Part : std::uint8_t { kPrefix, kHeader, kPayload };
  Result<void> read_prefix();
  Result<void> check_payload() const;
  TrainerFrame finish();

  PayloadLimits limits_;
  std::vector<std::byte> buffer_;  // the current part, at its full size
  std::size_t filled_ = 0;
  Part part_ = Part::kPrefix;
  std::uint64_t payload_size_ = 0;
  std::optional<TrainerMessage> message_;
};

// --- from the daemon: lengths and header; the payload is sent separately ---
struct TrainerHello {
  ClientId client;
  std::string run;  // its name
  std::uint64_t seed = 0;
  const learn::TaskSpec& task;
  const learn::DatasetInfo& data;
  std::uint32_t clients = 0;    // of a simulation, for all of which the program trains; 0: only for `client`
  bool asks_for_model = false;  // the program is to send its first model with its answer
};
std::string hello_frame(const TrainerHello& hello);

struct TrainerTask {
  std::uint64_t task = 0;  // increases; an update names it
  RoundNumber round;
  TrackId track;
  std::uint64_t seed = 0;  // below 2^53, since some programs read JSON numbers as doubles
  Duration time_left{};
  double data_share = 1;
  const Coverage& coverage;
  std::size_t model_size = 0;     // parameters
  std::size_t payload_bytes = 0;  // size of the payload that follows
  // In a simulation: which client, and its samples, by number or as a path.
  std::optional<ClientId> client{};
  std::span<const std::uint32_t> samples{};
  std::string path{};
};
// kResource if the coverage has too many ranges, or the client too many samples, for a header.
Result<std::string> train_frame(const TrainerTask& task);

struct EvaluationQuestion {
  std::uint64_t task = 0;
  RoundNumber round;
  TrackId track;
  Duration time_left{};
  std::size_t payload_bytes = 0;
  // In a simulation: a client whose own samples are at the path, or the numbers of samples in the data set's
  // training or test samples. Otherwise the program's own samples.
  std::optional<ClientId> client{};
  std::string path{};
  const char* of = nullptr;  // "training" or "test"
  std::span<const std::uint32_t> samples{};
};
// kResource if there are too many samples for a header.
Result<std::string> evaluate_frame(const EvaluationQuestion& question);

std::string stop_frame(std::uint64_t task, bool give_up);

}  // namespace fedge::client
