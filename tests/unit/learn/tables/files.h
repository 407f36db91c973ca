// Files of tables for tests.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/config/document.h"
#include "learn/spec.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::learn::test {

inline std::filesystem::path write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  REQUIRE(out.flush().good());
  return path;
}

// The [data] section of a run file, or the first problem with it.
inline Result<DataSpec> data_spec(const std::string& keys) {
  const auto document = config::parse_toml("[data]\n" + keys, "run.toml");
  REQUIRE_MESSAGE(document, document.error().message);
  config::Reader root(document->root, "", document->name);
  TaskSpec spec = read_task(root);
  if (const auto right = root.finish(); !right) return right.error();
  return spec.data;
}

}  // namespace fedge::learn::test
