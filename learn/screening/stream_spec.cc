#include "learn/screening/stream_spec.h"

#include <algorithm>
#include <cmath>

#include "core/config/document.h"
#include "core/platform/files.h"

namespace fedge::learn {
namespace {

void read_mixture(config::Reader& root, MixtureSpec& mixture) {
  mixture.components = static_cast<std::size_t>(root.integer(
      "components", static_cast<std::int64_t>(mixture.components),
      {1, static_cast<std::int64_t>(MixtureSpec::kMost)}, "Gaussians of the background's model."));
  mixture.rate = root.number("rate", mixture.rate, {1e-6, 1.0},
                             "Rate at which the background is learnt: its memory is 1 / rate samples.");
  mixture.match = root.number("match", mixture.match, {0.1, 100.0},
                              "A sample belongs to a Gaussian within this many deviations of its mean.");
  mixture.least_deviation = root.number("least_deviation", mixture.least_deviation, {1e-6, 1e6},
                                        "Least deviation of a Gaussian, of the logarithm of the energy.");
  mixture.background = root.number("background", mixture.background, {0.0, 1.0},
                                   "Weight of the Gaussians that are the background.");
  mixture.foreground_rate = root.number("foreground_rate", mixture.foreground_rate, {0.0, 1.0},
                                        "Factor of the rate while an event lasts.");
}

void read_times(config::Reader& root, ScreeningSpec& spec) {
  const auto seconds = [&](const char* key, double& value, double most, const char* doc) {
    value = root.number(key, value, {0.0, most}, doc);
  };
  seconds("warmup_seconds", spec.warmup_seconds, 3600, "Time at the beginning in which there are no events.");
  seconds("close_seconds", spec.close_seconds, 60,
          "An event ends when the score has been low for this long.");
  seconds("least_seconds", spec.least_seconds, 60, "Shorter events are dropped.");
  seconds("merge_seconds", spec.merge_seconds, 60, "Events with a shorter pause between them are one.");
  seconds("most_seconds", spec.most_seconds, 60, "Longer events are divided.");
  seconds("context_seconds", spec.context_seconds, 60, "What is kept before and after an event.");
  seconds("relearn_seconds", spec.relearn_seconds, 3600,
          "If the score stays high for longer, the background has changed, and is learnt anew.");
}

StreamSpec read_keys(config::Reader& root) {
  StreamSpec spec;
  ScreeningSpec& screening = spec.screening;
  screening.rate_hz =
      root.number("rate_hz", screening.rate_hz, {1.0, 1e5}, "Samples a second that the sensor delivers.");
  spec.channels = root.texts("channels", std::vector<std::string>{},
                             "Columns of the stream that are kept. Empty: all of the sensor.");
  spec.signal = root.texts("signal", std::vector<std::string>{},
                           "Of them, those whose Euclidean norm is screened. Empty: all.");
  spec.window = static_cast<std::size_t>(root.integer(
      "window", static_cast<std::int64_t>(spec.window), {8, static_cast<std::int64_t>(kMaxStreamWindow)},
      "Samples of a window. A shorter event is padded; a longer one becomes several windows, each "
      "of which overlaps half of the one before."));
  screening.high_pass_hz = root.number("high_pass_hz", screening.high_pass_hz, {0.0, 1e5},
                                       "Frequency of the high pass before screening. 0: none.");
  screening.window = static_cast<std::size_t>(root.integer(
      "energy_window", static_cast<std::int64_t>(screening.window),
      {1, static_cast<std::int64_t>(kMaxScreeningWindow)}, "Samples whose energy is one value."));
  screening.threshold = root.number("threshold", 0.0, {0.0, 1e9},
                                    "Above 0: an event is where the signal is above it, without a model of "
                                    "the background.");
  screening.open = root.number("open", screening.open, {0.0, 1e6}, "Score at which an event begins.");
  screening.close =
      root.number("close", screening.close, {0.0, 1e6}, "Score below which it can end; at most `open`.");
  read_mixture(root, screening.mixture);
  read_times(root, screening);
  spec.gap_seconds =
      root.number("gap_seconds", spec.gap_seconds, {1e-3, 3600.0},
                  "A longer step between two samples is a gap: no event reaches over it. A gap is at "
                  "least three samples long.");
  spec.rate_tolerance = root.number("rate_tolerance", spec.rate_tolerance, {0.01, 1.0},
                                    "Fraction by which the rate of the samples may differ from rate_hz.");
  spec.speed_exponent =
      root.number("speed_exponent", spec.speed_exponent, {0.0, 4.0},
                  "The signal is divided by (speed / speed_reference) to this power, if the "
                  "stream has a column `speed`.");
  spec.speed_reference =
      root.number("speed_reference", spec.speed_reference, {0.01, 1000.0}, "In metres per second.");
  return spec;
}

Result<void> check_names(const std::vector<std::string>& names, const char* key) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return invalid(std::string(key) + ": a column has no name");
    if (std::ranges::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i))
      return invalid(std::string(key) + ": lists \"" + names[i] + "\" twice");
  }
  return {};
}

Result<void> check_stream(const StreamSpec& spec) {
  FEDGE_TRY_VOID(check_names(spec.channels, "channels"));
  FEDGE_TRY_VOID(check_names(spec.signal, "signal"));
  for (const std::string& name : spec.signal)
    if (!spec.channels.empty() && std::ranges::find(spec.channels, name) == spec.channels.end())
      return invalid("signal: \"" + name + "\" is not one of the channels");
  // The stream's own names come later; a channel stands for them.
  const std::vector<std::string>& known = spec.channels.empty() ? spec.signal : spec.channels;
  const auto rules = spec.screening_of(known.empty() ? std::vector<std::string>{"z"} : known);
  return rules ? Result<void>() : rules.error();
}

}  // namespace

// The samples of the screening have, after the channels: label, position and gain.
Result<ScreeningSpec> StreamSpec::screening_of(const std::vector<std::string>& names) const {
  ScreeningSpec rules = screening;
  rules.channels = names.size() + 3;
  rules.gain = names.size() + 2;
  rules.signal.clear();
  for (const std::string& name : signal.empty() ? names : signal) {
    const auto column = std::ranges::find(names, name);
    if (column == names.end()) return invalid("signal: the stream has no channel \"" + name + "\"");
    rules.signal.push_back(static_cast<std::size_t>(column - names.begin()));
  }
  FEDGE_TRY_VOID(check_screening(rules));
  return rules;
}

Result<StreamSpec> read_stream_file(const std::filesystem::path& path) {
  FEDGE_TRY(text, read_file(path, config::kMaxDocumentBytes));
  FEDGE_TRY(document, config::parse_toml(text, path.string()));
  config::Reader root(document.root, "", document.name);
  StreamSpec spec = read_keys(root);
  FEDGE_TRY_VOID(root.finish());
  if (const auto possible = check_stream(spec); !possible)
    return possible.error().with_prefix(path.string() + ": ");
  return spec;
}

std::vector<config::KeyDoc> describe_stream_file() {
  std::vector<config::KeyDoc> docs;
  const config::Table none;
  config::Reader root(none, "", "", &docs);
  read_keys(root);
  return docs;
}

}  // namespace fedge::learn
