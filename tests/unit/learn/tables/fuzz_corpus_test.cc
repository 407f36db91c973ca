// The corpora of the fuzz targets of data, in every build.
#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/data_targets.h"

namespace fedge::fuzz {

TEST_CASE("fuzz corpus: CSV files, whole and cut short, are refused or read as the same rows again") {
  CHECK(replay("csv", feed_csv) >= 20);
}

TEST_CASE("fuzz corpus: headers of NumPy arrays are refused or describe what follows") {
  CHECK(replay("npy", feed_npy) >= 10);
  for (const char* name : {"float32", "version2", "big_endian", "object"}) {
    std::ifstream file(std::filesystem::path(FEDGE_SOURCE_DIR) / "tests/fuzz/corpus/npy" / name,
                       std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CAPTURE(name);
    CHECK(accept_npy(std::as_bytes(std::span(text))) == (text.find("'<f4'") != std::string::npos));
  }
}

TEST_CASE("fuzz corpus: sums of an evaluation are refused, or their metrics are within their bounds") {
  CHECK(replay("evaluation", feed_evaluation) >= 16);
  for (const char* name : {"two", "three", "thirty_three", "text", "two_wrong", "two_negative", "text_many",
                           "labels", "labels_wrong", "points", "points_wrong", "values", "values_wrong"}) {
    std::ifstream file(std::filesystem::path(FEDGE_SOURCE_DIR) / "tests/fuzz/corpus/evaluation" / name,
                       std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CAPTURE(name);
    CHECK(accept_evaluation(std::as_bytes(std::span(text))) ==
          (std::string(name).find('_') == std::string::npos || std::string(name) == "thirty_three"));
  }
}

TEST_CASE("fuzz corpus: JSON lines, and arrays of safetensors files, are refused or lie in the file") {
  CHECK(replay("json_lines", feed_json_lines) >= 14);
  CHECK(replay("safetensors_array", feed_safetensors_array) >= 14);
}

TEST_CASE("fuzz corpus: images, whole and cut short, are refused or have the size that they state") {
  CHECK(replay("image", feed_image) >= 25);
}

TEST_CASE("fuzz corpus: sums of statistics are refused, or their statistics are within their bounds") {
  CHECK(replay("statistics", feed_statistics) >= 8);
  for (const char* name :
       {"good", "none", "negative", "other_samples", "large_sum", "many_clients", "missing"}) {
    std::ifstream file(std::filesystem::path(FEDGE_SOURCE_DIR) / "tests/fuzz/corpus/statistics" / name,
                       std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CAPTURE(name);
    CHECK(accept_statistics(std::as_bytes(std::span(text))) ==
          (std::string(name) == "good" || std::string(name) == "none"));
  }
}

}  // namespace fedge::fuzz
