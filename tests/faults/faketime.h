// Programs with another calendar than the machine's, by libfaketime. The monotonic clock stays the same.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/skip.h"

namespace fedge::test {

// Returns the prefix of a command that gives a program another calendar. `setting` is a variable of
// libfaketime: "FAKETIME=@2040-01-01 00:00:00", or "FAKETIME_TIMESTAMP_FILE=PATH" for a calendar that
// changes. Without libfaketime, returns nothing and skips the test case.
inline std::optional<std::vector<std::string>> faketime(const std::string& setting) {
  for (const auto& directory : std::filesystem::directory_iterator("/usr/lib")) {
    const auto library = directory.path() / "faketime" / "libfaketimeMT.so.1";
    if (std::filesystem::exists(library))
      return std::vector<std::string>{"env", "LD_PRELOAD=" + library.string(), setting, "FAKETIME_NO_CACHE=1",
                                      "FAKETIME_DONT_FAKE_MONOTONIC=1"};
  }
  skip("faketime not found", "faketime");
  return std::nullopt;
}

}  // namespace fedge::test
