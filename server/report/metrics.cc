#include "server/report/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/detail/json.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxListed = 1'000'000;

ordered_json json_number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

std::string in_quotation_marks(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

// Reads the keys of one object and remembers the first that is missing or has a wrong type.
class Fields {
 public:
  explicit Fields(const ordered_json& object) : object_(object) {}

  std::uint64_t count(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned()) return fail(key, "an integer of at least 0"), 0;
    return value->get<std::uint64_t>();
  }
  double real(const char* key) {
    const auto* value = find(key);
    return value == nullptr ? kNotMeasured : as_real(key, *value);
  }
  std::string text(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(key, "a string"), "";
    return value->get<std::string>();
  }
  std::vector<double> reals(const char* key) {
    const auto* value = find(key);
    if (value == nullptr || value->is_null()) return {};
    if (!value->is_array() || value->size() > kMaxListed)
      return fail(key, "a list of numbers"), std::vector<double>();
    std::vector<double> out;
    for (const auto& item : *value) out.push_back(as_real(key, item));
    return out;
  }
  std::vector<std::string> texts(const char* key) {
    const auto* value = find(key);
    std::vector<std::string> out;
    if (value == nullptr) return out;
    bool fits = value->is_array() && value->size() <= kMaxListed;
    for (const auto& item : fits ? *value : ordered_json::array()) {
      fits = fits && item.is_string();
      if (fits) out.push_back(item.get<std::string>());
    }
    if (!fits) fail(key, "a list of strings");
    return out;
  }
  bool has(const char* key) const { return object_.contains(key); }
  const std::string& problem() const { return problem_; }

 private:
  const ordered_json* find(const char* key) {
    const auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    if (problem_.empty()) problem_ = std::string(key) + " is missing";
    return nullptr;
  }
  double as_real(const char* key, const ordered_json& value) {
    if (value.is_null()) return kNotMeasured;
    if (!value.is_number()) return fail(key, "a number or null"), kNotMeasured;
    return value.get<double>();
  }
  void fail(const char* key, const char* expected) {
    if (problem_.empty()) problem_ = std::string(key) + " is not " + expected;
  }

  const ordered_json& object_;
  std::string problem_;
};

std::string csv_number(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

ordered_json to_object(const TrackMetrics& metrics) {
  ordered_json object;
  object["exclude"] = metrics.track.exclude;
  object["owners"] = metrics.track.owners;
  object["owner_count"] = metrics.track.owner_count;
  object["members"] = metrics.track.members;
  object["model_hash"] = metrics.model_hash;
  object["test_accuracy"] = json_number(metrics.test_accuracy);
  object["test_loss"] = json_number(metrics.test_loss);
  object["train_loss"] = json_number(metrics.train_loss);
  object["clients_selected"] = metrics.clients_selected;
  object["clients_completed"] = metrics.clients_completed;
  return object;
}

// The keys that a round and a track have in common.
template <class Metrics>
void read_model(Fields& fields, Metrics& metrics) {
  metrics.model_hash = fields.text("model_hash");
  metrics.test_accuracy = fields.real("test_accuracy");
  metrics.test_loss = fields.real("test_loss");
  metrics.train_loss = fields.real("train_loss");
  metrics.clients_selected = fields.count("clients_selected");
  metrics.clients_completed = fields.count("clients_completed");
}

TrackMetrics read_track(Fields& fields) {
  TrackMetrics metrics;
  metrics.track.exclude = fields.texts("exclude");
  metrics.track.owners = fields.texts("owners");
  metrics.track.owner_count = fields.count("owner_count");
  metrics.track.members = fields.count("members");
  read_model(fields, metrics);
  return metrics;
}

Result<void> read_ranks(const ordered_json& ranks, RoundMetrics& metrics) {
  if (!ranks.is_array() || ranks.size() > kMaxListed) return invalid("ranks is not a list");
  for (const ordered_json& rank : ranks) {
    if (!rank.is_object()) return invalid("ranks is not a list of objects");
    Fields fields(rank);
    metrics.ranks.push_back({.rank = fields.count("rank"),
                             .accuracy = fields.real("accuracy"),
                             .loss = fields.real("loss"),
                             .bits_per_byte = fields.real("bits_per_byte")});
    if (!fields.problem().empty()) return invalid("ranks: " + fields.problem());
  }
  return {};
}

// Keys that files of earlier versions do not have.
Result<void> read_newer(const ordered_json& object, Fields& fields, RoundMetrics& metrics) {
  if (fields.has("participation_gini")) {
    metrics.participation.gini = fields.real("participation_gini");
    metrics.participation.jain = fields.real("participation_jain");
    metrics.participation.gap = fields.count("participation_gap");
  }
  if (fields.has("between_class_variance")) {
    metrics.between_class_variance = fields.real("between_class_variance");
    metrics.within_class_variance = fields.real("within_class_variance");
  }
  if (fields.has("covered_labels")) {
    metrics.labels.covered = fields.real("covered_labels");
    metrics.labels.accuracy = fields.real("covered_accuracy");
    metrics.labels.divergence = fields.real("label_divergence");
    metrics.labels.variance = fields.real("label_variance");
  }
  if (fields.has("bits_per_byte")) {
    metrics.bits_per_byte = fields.real("bits_per_byte");
    metrics.group_bits_per_byte = fields.real("group_bits_per_byte");
  }
  if (fields.has("epsilon")) {
    metrics.epsilon = fields.real("epsilon");
    metrics.clipping_norm = fields.real("clipping_norm");
  }
  if (fields.has("parameters_left_out")) metrics.parameters_left_out = fields.real("parameters_left_out");
  if (fields.has("ranks")) FEDGE_TRY_VOID(read_ranks(object.at("ranks"), metrics));
  if (!fields.has("tracks")) return {};
  const ordered_json& tracks = object.at("tracks");
  if (!tracks.is_array() || tracks.size() > kMaxListed) return invalid("tracks is not a list");
  for (const ordered_json& track : tracks) {
    if (!track.is_object()) return invalid("tracks is not a list of objects");
    Fields inner(track);
    metrics.tracks.push_back(read_track(inner));
    if (!inner.problem().empty()) return invalid("tracks: " + inner.problem());
  }
  return {};
}

}  // namespace

std::string to_json(const RoundMetrics& metrics) {
  ordered_json line;
  line["round"] = metrics.round;
  line["model_hash"] = metrics.model_hash;
  line["test_accuracy"] = json_number(metrics.test_accuracy);
  line["test_loss"] = json_number(metrics.test_loss);
  line["per_class_accuracy"] = ordered_json::array();
  for (const double accuracy : metrics.per_class_accuracy)
    line["per_class_accuracy"].push_back(json_number(accuracy));
  line["train_loss"] = json_number(metrics.train_loss);
  line["clients_selected"] = metrics.clients_selected;
  line["clients_completed"] = metrics.clients_completed;
  line["bytes_up"] = metrics.bytes_up;
  line["bytes_down"] = metrics.bytes_down;
  line["virtual_seconds"] = json_number(metrics.virtual_seconds);
  line["wall_seconds"] = json_number(metrics.wall_seconds);
  line["participation_gini"] = json_number(metrics.participation.gini);
  line["participation_jain"] = json_number(metrics.participation.jain);
  line["participation_gap"] = metrics.participation.gap;
  line["between_class_variance"] = json_number(metrics.between_class_variance);
  line["within_class_variance"] = json_number(metrics.within_class_variance);
  line["covered_labels"] = json_number(metrics.labels.covered);
  line["covered_accuracy"] = json_number(metrics.labels.accuracy);
  line["label_divergence"] = json_number(metrics.labels.divergence);
  line["label_variance"] = json_number(metrics.labels.variance);
  line["bits_per_byte"] = json_number(metrics.bits_per_byte);
  line["group_bits_per_byte"] = json_number(metrics.group_bits_per_byte);
  line["epsilon"] = json_number(metrics.epsilon);
  line["clipping_norm"] = json_number(metrics.clipping_norm);
  line["parameters_left_out"] = json_number(metrics.parameters_left_out);
  for (const RankMetrics& rank : metrics.ranks)
    line["ranks"].push_back({{"rank", rank.rank},
                             {"accuracy", json_number(rank.accuracy)},
                             {"loss", json_number(rank.loss)},
                             {"bits_per_byte", json_number(rank.bits_per_byte)}});
  for (const TrackMetrics& track : metrics.tracks) line["tracks"].push_back(to_object(track));
  return json_text(line);
}

Result<RoundMetrics> parse_metrics(std::string_view line, const std::string& where) {
  constexpr int kLevels = 4;  // of a track's list of names
  const auto object = parse_ordered_json(line, kLevels);
  if (!object.is_object()) return Error{ErrorCode::kCorrupt, where + ": is not the JSON object of a round"};
  Fields fields(object);
  RoundMetrics metrics;
  metrics.round = fields.count("round");
  read_model(fields, metrics);
  metrics.per_class_accuracy = fields.reals("per_class_accuracy");
  metrics.bytes_up = fields.count("bytes_up");
  metrics.bytes_down = fields.count("bytes_down");
  metrics.virtual_seconds = fields.real("virtual_seconds");
  metrics.wall_seconds = fields.real("wall_seconds");
  const auto newer = read_newer(object, fields, metrics);
  if (!fields.problem().empty()) return Error{ErrorCode::kCorrupt, where + ": " + fields.problem()};
  if (!newer) return Error{ErrorCode::kCorrupt, where + ": " + newer.error().message};
  return metrics;
}

Result<std::vector<RoundMetrics>> read_metrics(const std::filesystem::path& path) {
  FEDGE_TRY(text, read_file(path, kMaxFileBytes));
  std::vector<RoundMetrics> rounds;
  std::string_view rest = text;
  for (std::size_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    FEDGE_TRY(metrics, parse_metrics(rest.substr(0, end), path.string() + ":" + std::to_string(line)));
    rounds.push_back(std::move(metrics));
    rest.remove_prefix(end + 1);
  }
  return rounds;
}

std::string csv_field(std::string_view text) {
  return text.find_first_of(",\"\r\n") == std::string_view::npos ? std::string(text)
                                                                 : in_quotation_marks(text);
}

std::string joined_names(std::span<const std::string> names, char separator) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += separator;
    const bool plain =
        !name.empty() && name.find(separator) == std::string::npos && name.find('"') == std::string::npos;
    text += plain ? name : in_quotation_marks(name);
  }
  return text;
}

CsvColumns columns_of(std::span<const RoundMetrics> rounds) {
  CsvColumns columns;
  std::set<std::uint64_t> ranks;
  for (const RoundMetrics& round : rounds) {
    columns.classes = std::max(columns.classes, round.per_class_accuracy.size());
    for (const RankMetrics& rank : round.ranks) ranks.insert(rank.rank);
  }
  columns.ranks.assign(ranks.begin(), ranks.end());
  return columns;
}

std::uint64_t trainings_selected(const RoundMetrics& round) {
  if (round.tracks.empty()) return round.clients_selected;
  std::uint64_t sum = 0;
  for (const TrackMetrics& track : round.tracks) sum += track.clients_selected;
  return sum;
}

std::uint64_t trainings_completed(const RoundMetrics& round) {
  if (round.tracks.empty()) return round.clients_completed;
  std::uint64_t sum = 0;
  for (const TrackMetrics& track : round.tracks) sum += track.clients_completed;
  return sum;
}

std::uint64_t most_left_out(std::span<const RoundMetrics> rounds) {
  double most = 0;
  for (const RoundMetrics& round : rounds) most = std::fmax(most, round.parameters_left_out);
  return static_cast<std::uint64_t>(most);
}

std::string csv_header(const CsvColumns& columns) {
  std::string line =
      "round,model_hash,test_accuracy,test_loss,train_loss,clients_selected,clients_completed,"
      "bytes_up,bytes_down,virtual_seconds,wall_seconds,participation_gini,participation_jain,"
      "participation_gap,between_class_variance,within_class_variance,covered_labels,covered_accuracy,"
      "label_divergence,label_variance,bits_per_byte,group_bits_per_byte,epsilon,clipping_norm,"
      "parameters_left_out";
  for (const std::uint64_t rank : columns.ranks) {
    const std::string name = ",rank_" + std::to_string(rank);
    line += name + "_accuracy" + name + "_loss" + name + "_bits_per_byte";
  }
  for (std::size_t k = 0; k < columns.classes; ++k) line += ",class_" + std::to_string(k) + "_accuracy";
  return line + "\r\n";
}

std::string to_csv(const RoundMetrics& metrics, const CsvColumns& columns) {
  std::string line = std::to_string(metrics.round) + "," + csv_field(metrics.model_hash);
  for (const double value : {metrics.test_accuracy, metrics.test_loss, metrics.train_loss})
    line += "," + csv_number(value);
  for (const std::uint64_t value :
       {metrics.clients_selected, metrics.clients_completed, metrics.bytes_up, metrics.bytes_down}) {
    line += "," + std::to_string(value);
  }
  for (const double value : {metrics.virtual_seconds, metrics.wall_seconds, metrics.participation.gini,
                             metrics.participation.jain})
    line += "," + csv_number(value);
  line += "," + std::to_string(metrics.participation.gap);
  for (const double value :
       {metrics.between_class_variance, metrics.within_class_variance, metrics.labels.covered,
        metrics.labels.accuracy, metrics.labels.divergence, metrics.labels.variance, metrics.bits_per_byte,
        metrics.group_bits_per_byte, metrics.epsilon, metrics.clipping_norm, metrics.parameters_left_out})
    line += "," + csv_number(value);
  for (const std::uint64_t rank : columns.ranks) {
    const auto found = std::ranges::find(metrics.ranks, rank, &RankMetrics::rank);
    const RankMetrics at = found == metrics.ranks.end() ? RankMetrics{} : *found;
    for (const double value : {at.accuracy, at.loss, at.bits_per_byte}) line += "," + csv_number(value);
  }
  for (std::size_t k = 0; k < columns.classes; ++k) {
    line += "," +
            csv_number(k < metrics.per_class_accuracy.size() ? metrics.per_class_accuracy[k] : kNotMeasured);
  }
  return line + "\r\n";
}

std::string tracks_csv(std::span<const RoundMetrics> rounds) {
  std::string text =
      "round,exclude,owners,members,model_hash,test_accuracy,test_loss,train_loss,clients_selected,"
      "clients_completed\r\n";
  for (const RoundMetrics& round : rounds)
    for (const TrackMetrics& track : round.tracks) {
      text += std::to_string(round.round) + "," + csv_field(joined_names(track.track.exclude, ' ')) + "," +
              std::to_string(track.track.owner_count) + "," + std::to_string(track.track.members) + "," +
              track.model_hash;
      for (const double value : {track.test_accuracy, track.test_loss, track.train_loss})
        text += "," + csv_number(value);
      text += "," + std::to_string(track.clients_selected) + "," + std::to_string(track.clients_completed) +
              "\r\n";
    }
  return text;
}

}  // namespace fedge::server
