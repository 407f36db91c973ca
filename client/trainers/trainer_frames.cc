#include "client/trainers/trainer_frames.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "client/trainers/detail/run_description.h"
#include "core/detail/json.h"
#include "core/text.h"
#include "protocol/limits.h"

namespace fedge::client {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr double kLargestInteger = 0x1p53;

// Text of a program for error messages, cleaned and shortened, because it may contain anything.
std::string shown(std::string_view text) { return json_text(clean_text(text, 40)); }

// Keeps the scalars of the outermost object. Skips nested values, which a later version may send, up to the
// depth limit. A callback that returns false ends the parse.
class Header : public nlohmann::json_sax<json> {
 public:
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string>;
  std::map<std::string, Value> fields;
  std::string problem;

  bool null() override { return keep(nullptr); }
  bool boolean(bool value) override { return keep(value); }
  bool number_integer(number_integer_t value) override { return keep(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override { return keep(std::uint64_t{value}); }
  bool number_float(number_float_t value, const string_t&) override { return keep(value); }
  bool string(string_t& value) override { return keep(std::move(value)); }
  bool binary(binary_t&) override { return fail("holds binary data"); }
  bool start_object(std::size_t) override { return deeper(); }
  bool end_object() override { return shallower(); }
  bool start_array(std::size_t) override { return depth_ == 0 ? fail("is a list, not an object") : deeper(); }
  bool end_array() override { return shallower(); }
  bool key(string_t& value) override {
    if (depth_ != 1) return true;
    key_ = std::move(value);
    return !fields.contains(key_) || fail("holds the key " + shown(key_) + " twice");
  }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return fail("is not valid JSON at byte " + std::to_string(position));
  }

 private:
  bool keep(Value value) {
    if (depth_ == 0) return fail("is a single value, not an object");
    if (depth_ == 1) fields.insert_or_assign(key_, std::move(value));
    return true;
  }
  bool deeper() {
    if (depth_ == 1) fields.insert_or_assign(key_, nullptr);
    return ++depth_ <= kMaxTrainerDepth ||
           fail("is nested more than " + std::to_string(kMaxTrainerDepth) + " deep");
  }
  bool shallower() {
    --depth_;
    return true;
  }
  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }

  std::size_t depth_ = 0;
  std::string key_;
};

// Reads a message's fields; reports the first problem.
class Fields {
 public:
  explicit Fields(const Header& header, std::string type) : header_(header), type_(std::move(type)) {}

  std::optional<double> number(const std::string& key, double least, double most) {
    const auto field = header_.fields.find(key);
    if (field == header_.fields.end() || std::holds_alternative<std::nullptr_t>(field->second))
      return std::nullopt;
    double value = std::nan("");
    if (const auto* real = std::get_if<double>(&field->second)) value = *real;
    if (const auto* whole = std::get_if<std::uint64_t>(&field->second)) value = static_cast<double>(*whole);
    if (const auto* whole = std::get_if<std::int64_t>(&field->second)) value = static_cast<double>(*whole);
    if (value >= least && value <= most) return value;
    fail("needs " + key + " as a number from " + plain(least) + " to " + plain(most));
    return std::nullopt;
  }
  std::optional<std::uint64_t> count(const std::string& key, std::uint64_t least) {
    const auto field = header_.fields.find(key);
    if (field == header_.fields.end() || std::holds_alternative<std::nullptr_t>(field->second))
      return std::nullopt;
    const auto* value = std::get_if<std::uint64_t>(&field->second);
    if (value != nullptr && *value >= least && static_cast<double>(*value) <= kLargestInteger) return *value;
    fail("needs " + key + " as an integer from " + std::to_string(least) + " to 2^53");
    return std::nullopt;
  }
  // The number of samples, limited as in protocol messages: a coordinator disconnects on a larger one.
  std::optional<SampleCount> samples(const std::string& key, std::uint64_t least) {
    const auto samples = count(key, least);
    if (!samples) return std::nullopt;
    if (*samples > protocol::kMaxSamples) fail("needs " + key + " of at most 2^40");
    return SampleCount(*samples);
  }
  SampleCount samples() { return required("samples", samples("samples", 1)); }
  std::string text(const std::string& key) {
    const auto field = header_.fields.find(key);
    const auto* value = field == header_.fields.end() ? nullptr : std::get_if<std::string>(&field->second);
    if (value == nullptr) fail("has no string " + key);
    return value == nullptr ? "" : *value;
  }
  template <class T>
  T required(const std::string& key, std::optional<T> value) {
    if (!value) fail("has no " + key);
    return value.value_or(T{});
  }

  Result<TrainerMessage> finish(TrainerMessage message) const {
    if (error_.empty()) return message;
    return invalid("the trainer program's message \"" + type_ + "\" " + error_);
  }

 private:
  static std::string plain(double value) { return json_text(json(value)); }
  void fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }
  const Header& header_;
  std::string type_;
  std::string error_;
};

Result<TrainerMessage> read_ready(Fields fields, const Header& header) {
  const auto version = fields.required("protocol", fields.count("protocol", 0));
  if (header.fields.contains("protocol") && version != kTrainerProtocol)
    return Error{ErrorCode::kUnsupported, "the trainer program uses version " + std::to_string(version) +
                                              " of the trainer protocol, but this client supports version " +
                                              std::to_string(kTrainerProtocol)};
  TrainerReady ready;
  ready.samples = fields.samples();
  ready.capability = fields.number("capability", 0.001, 1);
  ready.evaluates = fields.samples("evaluates", 0).value_or(SampleCount());
  return fields.finish(ready);
}

Result<TrainerMessage> read_update(Fields fields) {
  TrainerUpdate update;
  update.task = fields.required("task", fields.count("task", 1));
  update.samples = fields.samples();
  update.steps = fields.required("steps", fields.count("steps", 1));
  update.train_loss = fields.required("train_loss", fields.number("train_loss", -1e30, 1e30));
  update.rms_loss = fields.number("rms_loss", 0, 1e30).value_or(std::abs(update.train_loss));
  return fields.finish(update);
}

// The header with the frame's two lengths in front.
std::string framed(const Ordered& header, std::size_t payload) {
  const std::string text = json_text(header);
  std::string frame(kTrainerPrefix, '\0');
  for (std::size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  for (std::size_t i = 0; i < 8; ++i) frame[4 + i] = static_cast<char>(payload >> (8 * i) & 0xFF);
  return frame + text;
}

}  // namespace

Result<TrainerMessage> parse_trainer_header(std::string_view text) {
  Header header;
  if (!json::sax_parse(text.begin(), text.end(), &header))
    return invalid("a header from the trainer program " + header.problem);
  const auto field = header.fields.find("type");
  const auto* type = field == header.fields.end() ? nullptr : std::get_if<std::string>(&field->second);
  if (type == nullptr) return invalid("a header from the trainer program has no string \"type\"");
  Fields fields(header, *type);
  if (*type == "ready") return read_ready(fields, header);
  if (*type == "update") return read_update(fields);
  if (*type == "predictions")
    return fields.finish(TrainerPredictions{fields.required("task", fields.count("task", 1))});
  if (*type == "evaluation") {
    const auto task = fields.required("task", fields.count("task", 1));
    return fields.finish(TrainerEvaluation{task, fields.samples()});
  }
  if (*type == "heartbeat") return TrainerMessage(TrainerProgress{});
  if (*type == "progress") {
    const auto fraction = fields.number("fraction", 0, 1);
    const auto loss = fields.number("loss", -1e30, 1e30);
    return fields.finish(TrainerProgress{fraction, loss});
  }
  if (*type == "error") {
    const auto task = fields.count("task", 1);
    const std::string reason = clean_text(fields.text("reason"), kMaxTrainerReason);
    return fields.finish(TrainerFailure{task, reason});
  }
  return invalid("the trainer program sent a message of unknown type " + shown(*type));
}

Result<void> TrainerFrameReader::read_prefix() {
  std::uint64_t header = 0;
  payload_size_ = 0;
  for (std::size_t i = 0; i < 4; ++i) header |= std::to_integer<std::uint64_t>(buffer_[i]) << (8 * i);
  for (std::size_t i = 0; i < 8; ++i)
    payload_size_ |= std::to_integer<std::uint64_t>(buffer_[4 + i]) << (8 * i);
  const std::string_view begin(reinterpret_cast<const char*>(buffer_.data()), buffer_.size());
  const std::string hint = "; a frame that begins with " + shown(begin) +
                           " may be text that the program printed to standard output";
  if (header < 2 || header > kMaxTrainerHeader)
    return invalid("the trainer program announces a header of " + std::to_string(header) +
                   " bytes; a header has 2 to " + std::to_string(kMaxTrainerHeader) + " bytes" + hint);
  const std::size_t most = std::max({limits_.update, limits_.predictions, limits_.first_model});
  if (payload_size_ > most)
    return invalid("the trainer program announces a payload of " + std::to_string(payload_size_) +
                   " bytes; at most " + std::to_string(most) + " are allowed" + hint);
  part_ = Part::kHeader;
  buffer_.resize(header);
  return {};
}

// Whether the message may, or must, have a payload of this size.
Result<void> TrainerFrameReader::check_payload() const {
  const auto needed = [&](std::size_t most, const char* message, const char* what) -> Result<void> {
    if (payload_size_ == 0)
      return invalid(std::string("the trainer program sent ") + message + " without " + what);
    if (payload_size_ <= most) return {};
    return invalid("the trainer program announces " + std::to_string(payload_size_) + " bytes of " + what +
                   "; at most " + std::to_string(most) + " are allowed");
  };
  if (std::holds_alternative<TrainerUpdate>(*message_)) return needed(limits_.update, "an update", "a model");
  if (std::holds_alternative<TrainerPredictions>(*message_))
    return needed(limits_.predictions, "predictions", "scores and targets");
  if (std::holds_alternative<TrainerReady>(*message_) && limits_.first_model > 0)
    return needed(limits_.first_model, "\"ready\"", "its first model");
  if (payload_size_ == 0) return {};
  return invalid("the trainer program sent " + std::to_string(payload_size_) +
                 " bytes of payload with a message type that has no payload");
}

TrainerFrame TrainerFrameReader::finish() {
  TrainerFrame frame{std::move(*message_), {}};
  if (part_ == Part::kPayload) frame.payload = std::move(buffer_);
  message_.reset();
  part_ = Part::kPrefix;
  buffer_.assign(kTrainerPrefix, std::byte{});
  return frame;
}

Result<std::optional<TrainerFrame>> TrainerFrameReader::filled(std::size_t bytes) {
  filled_ += bytes;
  if (filled_ < buffer_.size()) return std::optional<TrainerFrame>();
  filled_ = 0;
  if (part_ == Part::kPrefix) {
    FEDGE_TRY_VOID(read_prefix());
    return std::optional<TrainerFrame>();
  }
  if (part_ == Part::kHeader) {
    const auto* text = reinterpret_cast<const char*>(buffer_.data());
    FEDGE_TRY(message, parse_trainer_header({text, buffer_.size()}));
    message_ = std::move(message);
    FEDGE_TRY_VOID(check_payload());
    if (payload_size_ > 0) {
      part_ = Part::kPayload;
      buffer_.resize(payload_size_);
      return std::optional<TrainerFrame>();
    }
  }
  return std::optional(finish());
}

std::string hello_frame(const TrainerHello& hello) {
  const learn::InputShape& shape = hello.data.shape;
  Ordered header = {{"type", "hello"}, {"protocol", kTrainerProtocol}};
  if (hello.clients > 0)
    header["clients"] = hello.clients;
  else
    header["client"] = hello.client.value();
  header["run"] = {{"name", hello.run}, {"seed", hello.seed}};
  header["training"] = describe_training(hello.task.training);
  header["model"] = describe_model(hello.task.model);
  if (hello.asks_for_model) header["model"]["asked"] = true;
  header["data"] = {{"dataset", hello.task.data.dataset},
                    {"input", {shape.height, shape.width, shape.channels}},
                    {"task", hello.data.target().task()},
                    {"points", hello.data.points},
                    {"classes", hello.data.outputs}};
  return framed(header, 0);
}

Result<std::string> train_frame(const TrainerTask& task) {
  Ordered header = {{"type", "train"},
                    {"task", task.task},
                    {"round", task.round.value()},
                    {"track", task.track.value()},
                    {"seed", task.seed},
                    {"seconds_left", to_seconds(task.time_left)},
                    {"data_share", task.data_share}};
  if (task.coverage != Coverage::all(task.model_size)) {
    Ordered ranges = Ordered::array();
    for (const Range& range : task.coverage.ranges()) ranges.push_back({range.begin, range.end});
    header["coverage"] = std::move(ranges);
  }
  if (task.client) header["client"] = task.client->value();
  if (!task.path.empty())
    header["path"] = task.path;
  else if (task.client)
    header["samples"] = std::vector<std::uint32_t>(task.samples.begin(), task.samples.end());
  std::string frame = framed(header, task.payload_bytes);
  if (frame.size() - kTrainerPrefix > kMaxDaemonHeader)
    return Error{ErrorCode::kResource, "the part to be trained has " +
                                           std::to_string(task.coverage.ranges().size()) + " ranges and " +
                                           std::to_string(task.samples.size()) +
                                           " samples, more than a trainer program can receive"};
  return frame;
}

Result<std::string> evaluate_frame(const EvaluationQuestion& question) {
  Ordered header = {{"type", "evaluate"},
                    {"task", question.task},
                    {"round", question.round.value()},
                    {"track", question.track.value()},
                    {"seconds_left", to_seconds(question.time_left)}};
  if (question.client) header["client"] = question.client->value();
  if (!question.path.empty()) header["path"] = question.path;
  if (question.of != nullptr) {
    header["of"] = question.of;
    header["samples"] = std::vector<std::uint32_t>(question.samples.begin(), question.samples.end());
  }
  std::string frame = framed(header, question.payload_bytes);
  if (frame.size() - kTrainerPrefix > kMaxDaemonHeader)
    return Error{ErrorCode::kResource, "there are " + std::to_string(question.samples.size()) +
                                           " samples to evaluate, more than a trainer program can be told"};
  return frame;
}

std::string stop_frame(std::uint64_t task, bool give_up) {
  return framed({{"type", "stop"}, {"task", task}, {"give_up", give_up}}, 0);
}

}  // namespace fedge::client
