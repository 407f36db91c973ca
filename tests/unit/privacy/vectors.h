// Reference values of privacy accounting, computed independently of Fedge:
// tests/reference/privacy_vectors.json.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fedge::privacy {

inline double relative(double got, double wanted) { return std::abs(got / wanted - 1); }

// Returns the reference values of one category. Fails the test if the file or category is missing or empty.
inline std::vector<nlohmann::json> reference_vectors(const std::string& category) {
  const std::string path = FEDGE_SOURCE_DIR "/tests/reference/privacy_vectors.json";
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, "cannot read " << path);
  std::vector<nlohmann::json> vectors;
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const auto& vector : all["vectors"])
    if (vector["category"] == category) vectors.push_back(vector);
  REQUIRE_MESSAGE(!vectors.empty(), path << " has no values of category " << category);
  return vectors;
}

}  // namespace fedge::privacy
