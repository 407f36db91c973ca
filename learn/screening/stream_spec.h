// StreamSpec: how a device screens the stream of one of its sensors, from a TOML file of its owner
// (`fedge-client run --screening FILE`, `fedge data screen --screening FILE`).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/result.h"
#include "learn/screening/screening.h"

namespace fedge::learn {

struct StreamSpec {
  std::vector<std::string> channels;  // columns of the sensor that are kept; empty: all
  std::vector<std::string> signal;    // of them, those that are screened; empty: all
  // Rate, and every other rule. Channels and signal are those of the stream's columns; both are set once its
  // first line has come.
  ScreeningSpec screening;
  double gap_seconds = 0.25;    // longer steps between samples are gaps
  double rate_tolerance = 0.2;  // fraction by which the measured rate may differ from the declared one
  // Exponent and reference, in metres per second, of the speed by which the signal is divided for screening:
  // (v / v0)^exponent.
  double speed_exponent = 0.7;
  double speed_reference = 10;
  std::size_t window = 256;  // samples of a window, the sample of a data set

  // The rules for a stream with these columns. kInvalid names a column that is missing.
  Result<ScreeningSpec> screening_of(const std::vector<std::string>& names) const;
};

inline constexpr std::size_t kMaxStreamWindow = 65'536;

// kInvalid names file, line and key.
Result<StreamSpec> read_stream_file(const std::filesystem::path& path);
// Its keys, for the generated reference.
std::vector<config::KeyDoc> describe_stream_file();

}  // namespace fedge::learn
