// What is asked for in the directory, and what is found there, as `fedge dht` reads and prints it.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "dht/directory.h"

namespace fedge::apps {

// {"run", NAME}, {"coordinator", KEY}, {"node", KEY, RUN}, {"model", KEY, RUN[, TRACK]}, {"peers", OBJECT} or
// {"key", KEY}; keys and objects are 64 hexadecimal digits, runs 16. The error says which word is wrong.
Result<dht::Key> key_sought(const std::vector<std::string>& words);
// The run's number as 16 hexadecimal digits.
std::string text_of(RunId run);
Result<RunId> parse_run_id(const std::string& text);

// A paragraph for each record, or an array of objects:
//   [{"kind":"coordinator","signer":"..","sequence":1,"expires":"2026-11-22T22:40:00Z",...}]
std::string records_as_text(const std::vector<dht::Record>& records);
std::string records_as_json(const std::vector<dht::Record>& records);

}  // namespace fedge::apps
