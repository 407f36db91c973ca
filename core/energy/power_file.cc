#include "core/energy/power_file.h"

#include "core/config/document.h"
#include "core/platform/files.h"
#include "core/text.h"

namespace fedge {
namespace {

DevicePower read_keys(config::Reader& root) {
  DevicePower power;
  power.hertz = root.numbers("hertz", std::nullopt, {1.0, 1e12},
                             "Frequencies of the processor cluster that trains, in ascending order.");
  power.volts = root.numbers("volts", std::nullopt, {1e-3, 1e3}, "Its voltage at each of them.");
  power.watts_lowest =
      root.number("watts_lowest", std::nullopt, {1e-9, 1e6},
                  "Power under full load minus power when idle, at the lowest frequency, in watts.");
  power.watts_highest =
      root.number("watts_highest", std::nullopt, {1e-9, 1e6}, "The same at the highest frequency.");
  power.cycles_per_flop =
      root.number("cycles_per_flop", std::nullopt, {1e-9, 1e9},
                  "Cycles of the cluster for a floating-point operation of training, on all its cores.");
  power.awake_watts = root.number("awake_watts", 0.0, {0.0, 1e6},
                                  "Power of the rest of the device while it works for a run, in watts.");
  power.send_watts =
      root.number("send_watts", 0.0, {0.0, 1e6}, "Power of the radio while it sends, in watts.");
  power.receive_watts =
      root.number("receive_watts", 0.0, {0.0, 1e6}, "Power of the radio while it receives, in watts.");
  power.send_bytes_per_second =
      root.number("send_bytes_per_second", std::nullopt, {1e-3, 1e15}, "Upload rate in bytes per second.");
  power.receive_bytes_per_second = root.number("receive_bytes_per_second", std::nullopt, {1e-3, 1e15},
                                               "Download rate in bytes per second.");
  return power;
}

std::string list_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + number_text(value);
  return "[" + text + "]";
}

}  // namespace

Result<DevicePower> read_power_file(const std::filesystem::path& path) {
  FEDGE_TRY(text, read_file(path, config::kMaxDocumentBytes));
  FEDGE_TRY(document, config::parse_toml(text, path.string()));
  config::Reader root(document.root, "", document.name);
  DevicePower power = read_keys(root);
  FEDGE_TRY_VOID(root.finish());
  if (const auto valid = check_power(power); !valid) return valid.error().with_prefix(path.string() + ": ");
  return power;
}

std::string power_file_text(const DevicePower& power) {
  std::string text = "# How much energy this device needs. Read by: fedge-client run --power FILE\n";
  const auto add = [&](const char* key, const std::string& value) {
    text += std::string(key) + " = " + value + "\n";
  };
  add("hertz", list_text(power.hertz));
  add("volts", list_text(power.volts));
  add("watts_lowest", number_text(power.watts_lowest));
  add("watts_highest", number_text(power.watts_highest));
  add("cycles_per_flop", number_text(power.cycles_per_flop));
  add("awake_watts", number_text(power.awake_watts));
  add("send_watts", number_text(power.send_watts));
  add("receive_watts", number_text(power.receive_watts));
  add("send_bytes_per_second", number_text(power.send_bytes_per_second));
  add("receive_bytes_per_second", number_text(power.receive_bytes_per_second));
  return text;
}

std::vector<config::KeyDoc> describe_power_file() {
  std::vector<config::KeyDoc> docs;
  const config::Table empty;
  config::Reader root(empty, "", "", &docs);
  read_keys(root);
  return docs;
}

}  // namespace fedge
