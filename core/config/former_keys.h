// Keys that --set leaves without effect when it changes a `kind`: the file has them for its own kind. They
// are dropped with a note each, so that one key on the command line is enough to try another kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/config/problems.h"

namespace fedge::config {

// What is wrong with a document, as Reader::finish_problems() has it.
using FindProblems = std::function<std::vector<Problem>(const Document&)>;

struct FormerKeysDropped {
  Document document;
  // "run.toml:12: `model.hidden` does not apply to model.kind = cnn and is ignored because --set changed the
  // kind"
  std::vector<std::string> notes;
};

// Drops each key of the file that is inapplicable now and was applicable with the kinds that the file has
// itself. Keys given by --set stay, and so do those that were inapplicable before: they are errors.
FormerKeysDropped drop_former_keys(const Document& document, const FindProblems& find_problems);

}  // namespace fedge::config
