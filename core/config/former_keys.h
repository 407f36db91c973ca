// Drops keys that become inapplicable when --set changes a `kind`, with a note for each. One key on the
// command line is then enough to try another kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/config/problems.h"

namespace fedge::config {

// Returns the problems of a document, as Reader::finish_problems() does.
using FindProblems = std::function<std::vector<Problem>(const Document&)>;

struct FormerKeysDropped {
  Document document;
  // "run.toml:12: `model.hidden` does not apply to model.kind = cnn and is ignored because --set changed the
  // kind"
  std::vector<std::string> notes;
};

// Drops each key of the file that is inapplicable but was applicable with the file's own kinds. Keys from
// --set and keys that were inapplicable before stay: they are errors.
FormerKeysDropped drop_former_keys(const Document& document, const FindProblems& find_problems);

}  // namespace fedge::config
