// Parses the directory keys of `fedge dht`, and prints the records.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "dht/directory.h"

namespace fedge::apps {

// Parses {"run", NAME}, {"coordinator", KEY}, {"node", KEY, RUN}, {"model", KEY, RUN[, TRACK]}, {"peers",
// OBJECT} or {"key", KEY}. Keys and objects are 64 hexadecimal digits, runs 16. The error names the wrong
// word.
Result<dht::Key> key_sought(const std::vector<std::string>& words);
// The run's number as 16 hexadecimal digits.
std::string text_of(RunId run);
Result<RunId> parse_run_id(const std::string& text);

// A paragraph for each record, or an array of objects:
//   [{"kind":"coordinator","signer":"..","sequence":1,"expires":"2026-11-22T22:40:00Z",...}]
std::string records_as_text(const std::vector<dht::Record>& records);
std::string records_as_json(const std::vector<dht::Record>& records);

}  // namespace fedge::apps
