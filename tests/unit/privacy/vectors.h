// Reference values that were computed independently of Fedge, where they lie beside the project.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fedge::privacy {

// Those of a category; nothing if there is no such file: the test is then skipped, and says so.
inline std::optional<std::vector<nlohmann::json>> reference_vectors(const std::string& category) {
  const char* named = std::getenv("FEDGE_PRIVACY_VECTORS");
  const std::filesystem::path path =
      named != nullptr ? named : FEDGE_SOURCE_DIR "/../shared/vectors/privacy-vectors.json";
  std::ifstream file(path);
  if (!file) {
    MESSAGE("skipped: not found: " << path.string());
    return std::nullopt;
  }
  std::vector<nlohmann::json> vectors;
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const auto& vector : all["vectors"])
    if (vector["category"] == category) vectors.push_back(vector);
  return vectors;
}

}  // namespace fedge::privacy
