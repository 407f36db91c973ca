#include "apps/directory/record_text.h"

#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstdio>

#include "core/detail/json.h"
#include "core/node.h"
#include "server/access/calendar.h"

namespace fedge::apps {
namespace {

using nlohmann::ordered_json;

Result<Digest> parse_digest(const std::string& text, const std::string& what) {
  const auto parsed = parse_public_key(text);  // also 32 bytes
  if (!parsed)
    return invalid(what + " must be 64 lower-case hexadecimal digits, not '" + text.substr(0, 80) + "'");
  return parsed->bytes;
}

Result<std::uint32_t> parse_track(const std::string& text) {
  std::uint32_t track = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), track);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid("a track must be a number, not '" + text.substr(0, 80) + "'");
  return track;
}

// The key of a node's or a model's record, from a signer and a run.
Result<dht::Key> key_of_run(const std::vector<std::string>& words) {
  FEDGE_TRY(signer, parse_public_key(words[1]));
  FEDGE_TRY(run, parse_run_id(words[2]));
  if (words[0] == "node") return dht::node_key(signer, run);
  FEDGE_TRY(track, words.size() == 4 ? parse_track(words[3]) : Result<std::uint32_t>(0U));
  return dht::model_key(signer, run, TrackId(track));
}

std::string date_of(Time time) {
  return server::calendar_text(std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count());
}

template <class Addresses>
ordered_json texts_of(const Addresses& addresses) {
  ordered_json all = ordered_json::array();
  for (const auto& address : addresses) all.push_back(protocol::to_string(address));
  return all;
}

void put(ordered_json& json, const char* name, const std::optional<double>& value) {
  if (value) json[name] = *value;
}

ordered_json json_of(const dht::Record& record) {
  ordered_json json{{"kind", dht::name_of(record.content)},
                    {"signer", to_hex(record.signer)},
                    {"sequence", record.sequence},
                    {"expires", date_of(record.expires)},
                    {"bytes", record.bytes.size()}};
  std::visit(Overloaded{[&](const dht::Announcement& said) {
                          json["addresses"] = texts_of(said.addresses);
                          if (said.run_name.empty()) return;
                          json["run"] = said.run_name;
                          json["run_id"] = text_of(said.run);
                        },
                        [&](const dht::NodeStatus& said) {
                          json["run_id"] = text_of(said.run);
                          put(json, "latency_ms", said.record.latency_ms);
                          put(json, "packet_loss", said.record.packet_loss);
                          put(json, "freshness_seconds", said.record.freshness);
                          put(json, "utility", said.record.utility);
                          put(json, "availability", said.record.availability);
                          put(json, "battery", said.record.battery);
                          if (!said.record.labels.empty()) json["labels"] = said.record.labels;
                        },
                        [&](const dht::ModelPointer& said) {
                          json["run_id"] = text_of(said.run);
                          json["track"] = said.track.value();
                          json["round"] = said.round.value();
                          json["manifest"] = to_hex(said.manifest);
                          json["model_bytes"] = said.size.value();
                        },
                        [&](const dht::PeerList& said) {
                          json["object"] = to_hex(said.object);
                          json["peers"] = ordered_json::array();
                          for (const auto& peer : said.peers)
                            json["peers"].push_back(
                                {{"address", protocol::to_string(peer.address)}, {"key", to_hex(peer.key)}});
                        }},
             record.content);
  return json;
}

}  // namespace

std::string text_of(RunId run) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, run.value());
  return text;
}

Result<RunId> parse_run_id(const std::string& text) {
  std::uint64_t run = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), run, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size())
    return invalid("a run's id must be 16 lower-case hexadecimal digits, not '" + text.substr(0, 80) + "'");
  return RunId(run);
}

Result<dht::Key> key_sought(const std::vector<std::string>& words) {
  const std::string kind = words.empty() ? std::string() : words[0];
  const auto takes = [&](std::size_t least, std::size_t most) {
    return words.size() > least && words.size() <= most + 1;
  };
  if (kind == "run" && takes(1, 1)) return dht::run_key(words[1]);
  if (kind == "coordinator" && takes(1, 1)) {
    FEDGE_TRY(signer, parse_public_key(words[1]));
    return dht::coordinator_key(signer);
  }
  if ((kind == "node" && takes(2, 2)) || (kind == "model" && takes(2, 3))) return key_of_run(words);
  if (kind == "peers" && takes(1, 1)) {
    FEDGE_TRY(object, parse_digest(words[1], "an object's id"));
    return dht::peers_key(object);
  }
  if (kind == "key" && takes(1, 1)) return parse_digest(words[1], "a key of the directory");
  return invalid(
      "unknown kind of key, or wrong number of words; expected one of: run NAME, coordinator KEY, node KEY "
      "RUN, "
      "model KEY RUN [TRACK], peers OBJECT, key KEY");
}

std::string records_as_text(const std::vector<dht::Record>& records) {
  std::string text;
  for (const dht::Record& record : records) {
    if (!text.empty()) text += "\n";
    const ordered_json fields = json_of(record);
    for (const auto& [name, value] : fields.items()) {
      char line[32];
      std::snprintf(line, sizeof line, "%-18s", name.c_str());
      text += line + (value.is_string() ? value.get<std::string>() : json_text(value)) + "\n";
    }
  }
  return text;
}

std::string records_as_json(const std::vector<dht::Record>& records) {
  ordered_json all = ordered_json::array();
  for (const dht::Record& record : records) all.push_back(json_of(record));
  return json_text(all, 1) + "\n";
}

}  // namespace fedge::apps
